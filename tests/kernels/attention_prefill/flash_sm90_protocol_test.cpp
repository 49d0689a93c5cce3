// How the copying warp and the math warpgroups of flash_sm90 hand stages to each other, without a GPU: the steps of
// each as flash_sm90_copy.cuh and flash_sm90_math.cuh take them, function by function under the same names, run one at
// a time in random order. Copies land in any order and at any time. A warpgroup is one agent here: its warps do the
// same, and what one of them waits for, all do.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_prefill/flash_sm90_config.hpp"
#include "kernels/attention_prefill/flash_sm90_ring.hpp"
#include "kernels/attention_prefill/flash_sm90_work.hpp"
#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

enum class Act {
  wait_ready,
  wait_read,
  arrive_ready,
  arrive_read,
  write,
  copy,
  begin_read,
  end_read,
  wait_turn,
  pass_turn
};

struct Step {
  Act act;
  int at;             // a stage; of turns, a warpgroup
  unsigned argument;  // of waits a parity, of writes and reads what the stage holds
};
using Steps = std::vector<Step>;

enum class Mistake { none, queries_released_unseen, two_blocks_skipped_within_a_stream };

template <class Shape>
struct Stages {
  static constexpr int kWork = 3;
  static int work(std::uint32_t i) { return static_cast<int>(i); }
  static int q(int warpgroup, std::uint32_t i) { return kWork + warpgroup * Shape::kQStages + static_cast<int>(i); }
  static int k(std::uint32_t i) { return kWork + Shape::kWarpgroups * Shape::kQStages + static_cast<int>(i); }
  static int v(std::uint32_t i) { return k(Shape::kStages) + static_cast<int>(i); }
  static constexpr int kCount = kWork + Shape::kWarpgroups * Shape::kQStages + 2 * Shape::kStages;
  static bool is_q(int stage) { return stage >= q(0, 0) && stage < k(0); }
};

unsigned block_of(std::uint32_t tile, int block) { return tile * 1000 + static_cast<unsigned>(block); }

template <class Shape>
class CopyWarp {
 public:
  explicit CopyWarp(const std::vector<PrefillWork>& tiles) : works(tiles) {}

  Steps run() {
    std::uint32_t work = find_next();
    if (sees_keys(work)) copy_queries(work);
    while (works[work].valid) work = copy_tile(work);
    return steps;
  }

 private:
  using At = Stages<Shape>;

  std::uint32_t find_next() {
    const std::uint32_t tile = slot.uses;
    const int stage = At::work(slot.stage());
    steps.push_back({Act::wait_read, stage, slot.parity() ^ 1});
    steps.push_back({Act::write, stage, tile});
    steps.push_back({Act::arrive_ready, stage, 0});
    slot.advance();
    return tile;
  }
  bool sees_keys(std::uint32_t work) const { return works[work].valid && !tile_blocks<Shape>(works[work]).empty(); }

  std::uint32_t copy_tile(std::uint32_t work) {
    const KeyBlocks blocks = tile_blocks<Shape>(works[work]);
    if (!blocks.empty()) copy_keys(work, blocks.end - 1);
    if (blocks.end - blocks.begin > 1) copy_keys(work, blocks.end - 2);
    const std::uint32_t next = find_next();
    if (!blocks.empty()) copy_values(work, blocks.end - 1);
    if (Shape::kQStages > 1 && sees_keys(next)) copy_queries(next);
    for (int block = blocks.end - 3; block >= blocks.begin; --block) {
      copy_keys(work, block);
      copy_values(work, block + 1);
    }
    if (blocks.end - blocks.begin > 1) copy_values(work, blocks.begin);
    if (Shape::kQStages == 1 && sees_keys(next)) copy_queries(next);
    return next;
  }

  template <class OneRing>
  void fill(int stage, const OneRing& ring, unsigned contents) {
    steps.push_back({Act::wait_read, stage, ring.parity() ^ 1});
    steps.push_back({Act::copy, stage, contents});
  }
  void copy_queries(std::uint32_t work) {
    for (int w = 0; w < Shape::kWarpgroups; ++w) fill(At::q(w, q.stage()), q, work);
    q.advance();
  }
  void copy_keys(std::uint32_t work, int block) {
    fill(At::k(k.stage()), k, block_of(work, block));
    k.advance();
  }
  void copy_values(std::uint32_t work, int block) {
    fill(At::v(v.stage()), v, block_of(work, block));
    v.advance();
  }

  const std::vector<PrefillWork>& works;
  Steps steps;
  Ring<At::kWork> slot;
  Ring<Shape::kQStages> q;
  Ring<Shape::kStages> k;
  Ring<Shape::kStages> v;
};

template <class Shape>
class MathWarpgroup {
 public:
  MathWarpgroup(const std::vector<PrefillWork>& tiles, int warpgroup, Mistake made)
      : works(tiles), id(warpgroup), mistake(made) {}

  Steps run() {
    if (id == Shape::kWarpgroups - 1) pass_turn();
    while (enter_tile()) {
      if (block < last_block) {
        pass_over_tile();
        continue;
      }
      begin_stream();
      do {
        while (block > last_block) next_block();
      } while (next_tile());
    }
    return steps;
  }

 private:
  using At = Stages<Shape>;

  void wait_turn() { steps.push_back({Act::wait_turn, id, 0}); }
  void pass_turn() { steps.push_back({Act::pass_turn, (id + 1) % Shape::kWarpgroups, 0}); }

  bool enter_tile() {
    steps.push_back({Act::wait_ready, At::work(slot.stage()), slot.parity()});
    tile = slot.uses;
    if (!works[tile].valid) return false;
    if (!holds_slot) steps.push_back({Act::begin_read, At::work(slot.stage()), tile});
    holds_slot = true;
    const WarpgroupWork mine = warpgroup_keys<Shape>(works[tile], id);
    block = mine.block;
    last_block = mine.last_block;
    skipped_before = mine.skipped_before;
    skipped_after = mine.skipped_after;
    return true;
  }
  void leave_tile(std::uint32_t left) {
    const int stage = At::work(left % At::kWork);
    steps.push_back({Act::end_read, stage, left});
    steps.push_back({Act::arrive_read, stage, 0});
  }

  void pass_over_tile() {
    for (int i = 0; i < skipped_before; ++i) skip_block();
    if (skipped_before > 0) {
      if (mistake != Mistake::queries_released_unseen) wait_queries();
      release_queries();
    }
    leave_tile(tile);
    advance_slot();
  }

  void skip_keys() {
    wait_turn();
    wait_keys();
    release_keys();
    pass_turn();
  }
  void skip_values() {
    wait_values();
    release_values();
  }
  void skip_block() {
    skip_keys();
    skip_values();
  }

  void begin_stream() {
    for (int i = 0; i < skipped_before; ++i) skip_block();
    wait_queries();
    scores();
    pass_turn();
    release_scores_operands();
    values_of = tile;
  }
  void next_block() {
    --block;
    issue_products(block + 1);
    wait_outputs(block + 1);
  }
  bool next_tile() {
    const std::uint32_t left = tile;
    const int at = block;
    const int after = skipped_after;
    advance_slot();
    const int most = mistake == Mistake::two_blocks_skipped_within_a_stream ? 2 : 1;
    if (after > 0 || !enter_tile() || block < last_block || skipped_before > most) {
      outputs(at);
      wait_outputs(at);
      for (int i = 0; i < after; ++i) skip_block();
      leave_tile(left);
      return false;
    }
    for (int i = 0; i < skipped_before; ++i) skip_keys();
    wait_queries();
    issue_products(at);
    wait_outputs(at);
    leave_tile(left);
    for (int i = 0; i < skipped_before; ++i) skip_values();
    values_of = tile;
    return true;
  }

  void issue_products(int values_block) {
    scores();
    outputs(values_block);
    pass_turn();
    release_scores_operands();
  }
  void scores() {
    wait_keys();
    wait_turn();
    steps.push_back({Act::begin_read, At::q(id, q.stage()), tile});
    steps.push_back({Act::begin_read, At::k(k.stage()), block_of(tile, block)});
  }
  void release_scores_operands() {
    steps.push_back({Act::end_read, At::q(id, q.stage()), tile});
    steps.push_back({Act::end_read, At::k(k.stage()), block_of(tile, block)});
    release_keys();
    if (block == last_block) release_queries();
  }
  void outputs(int values_block) {
    wait_values();
    steps.push_back({Act::begin_read, At::v(v.stage()), block_of(values_of, values_block)});
  }
  void wait_outputs(int values_block) {
    steps.push_back({Act::end_read, At::v(v.stage()), block_of(values_of, values_block)});
    release_values();
  }

  void wait_queries() { steps.push_back({Act::wait_ready, At::q(id, q.stage()), q.parity()}); }
  void wait_keys() { steps.push_back({Act::wait_ready, At::k(k.stage()), k.parity()}); }
  void wait_values() { steps.push_back({Act::wait_ready, At::v(v.stage()), v.parity()}); }
  void release_queries() {
    steps.push_back({Act::arrive_read, At::q(id, q.stage()), 0});
    q.advance();
  }
  void release_keys() {
    steps.push_back({Act::arrive_read, At::k(k.stage()), 0});
    k.advance();
  }
  void release_values() {
    steps.push_back({Act::arrive_read, At::v(v.stage()), 0});
    v.advance();
  }
  void advance_slot() {
    slot.advance();
    holds_slot = false;
  }

  const std::vector<PrefillWork>& works;
  const int id;
  const Mistake mistake;
  Steps steps;
  Ring<At::kWork> slot;
  Ring<Shape::kStages> k;
  Ring<Shape::kStages> v;
  Ring<Shape::kQStages> q;
  std::uint32_t tile = 0;
  std::uint32_t values_of = 0;  // the tile that P and the next values belong to
  bool holds_slot = false;
  int block = 0;
  int last_block = 0;
  int skipped_before = 0;
  int skipped_after = 0;
};

struct Barrier {
  int arrivals = 1;  // of a phase
  int missing = 1;   // in this one
  int copies = 0;    // announced and not landed
  unsigned phase = 0;

  bool ended(unsigned parity) const { return phase % 2 != parity; }
  void settle() {
    if (missing > 0 || copies > 0) return;
    missing = arrivals;
    ++phase;
  }
};

struct Stage {
  Barrier ready;
  Barrier read;
  unsigned contents = ~0U;
  int readers = 0;
};

// Runs all agents to their ends. Each step is the first possible one in an order of preference of agents and copies,
// which changes now and then: so an agent can fall far behind the others. Returns what went wrong, or "".
template <class Shape>
std::string run_interleaved(const std::vector<Steps>& agents, std::mt19937& random) {
  std::vector<Stage> stages(Stages<Shape>::kCount);
  for (int i = 0; i < Stages<Shape>::kCount; ++i) {
    Barrier& read = stages[static_cast<std::size_t>(i)].read;
    read.arrivals = read.missing = Stages<Shape>::is_q(i) ? 1 : Shape::kWarpgroups;
  }
  std::array<int, Shape::kWarpgroups> turns{};
  std::vector<std::size_t> next(agents.size(), 0);
  std::vector<std::pair<int, unsigned>> copies;  // under way: stage, contents
  std::vector<std::size_t> order(agents.size() + 1);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;

  std::string fault;
  const auto arrive = [&](Barrier& barrier, const char* name) {
    if (barrier.missing == 0) fault = std::string("more arrivals than a phase of ") + name + " takes";
    --barrier.missing;
    barrier.settle();
  };
  const auto possible = [&](const Step& step) {
    const auto at = static_cast<std::size_t>(step.at);
    if (step.act == Act::wait_turn) return turns[at] > 0;
    if (step.act == Act::wait_ready) return stages[at].ready.ended(step.argument);
    if (step.act == Act::wait_read) return stages[at].read.ended(step.argument);
    return true;
  };
  const auto take = [&](const Step& step) {
    const auto at = static_cast<std::size_t>(step.at);
    if (step.act == Act::wait_turn) {
      --turns[at];
      return;
    }
    if (step.act == Act::pass_turn) {
      if (++turns[at] > 1) fault = "a turn passed twice";
      return;
    }
    Stage& stage = stages[at];
    switch (step.act) {
      case Act::arrive_ready: arrive(stage.ready, "ready"); break;
      case Act::arrive_read: arrive(stage.read, "read"); break;
      case Act::write:
      case Act::copy:
        if (stage.readers > 0) fault = "a stage is overwritten while it is read";
        stage.contents = step.act == Act::write ? step.argument : ~0U;
        if (step.act == Act::write) break;
        ++stage.ready.copies;
        copies.emplace_back(step.at, step.argument);
        arrive(stage.ready, "ready");
        break;
      case Act::begin_read:
      case Act::end_read:
        if (stage.contents != step.argument) fault = "a stage does not hold what its reader expects";
        stage.readers += step.act == Act::begin_read ? 1 : -1;
        break;
      default: break;
    }
  };
  const auto land = [&] {
    const std::size_t i = random() % copies.size();
    Stage& stage = stages[static_cast<std::size_t>(copies[i].first)];
    stage.contents = copies[i].second;
    copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(i));
    --stage.ready.copies;
    stage.ready.settle();
  };

  while (fault.empty()) {
    if (random() % 16 == 0) std::swap(order[random() % order.size()], order[random() % order.size()]);
    bool moved = false;
    for (std::size_t i = 0; i < order.size() && !moved; ++i) {
      const std::size_t agent = order[i];
      if (agent == agents.size()) {
        moved = !copies.empty();
        if (moved) land();
      } else if (next[agent] < agents[agent].size() && possible(agents[agent][next[agent]])) {
        take(agents[agent][next[agent]++]);
        moved = true;
      }
      // The math warpgroups are gone and with them the shared memory.
      bool gone = true;
      for (std::size_t a = 0; a < agents.size(); ++a) gone = gone && next[a] == agents[a].size();
      if (gone) return copies.empty() ? fault : "the block ends with copies under way";
    }
    if (!moved) return "deadlock";
  }
  return fault;
}

// Tiles of sequences and heads as a block may get them: short and long, with and without keys, masked or not.
template <class Shape>
std::vector<PrefillWork> random_tiles(std::mt19937& random) {
  std::vector<PrefillWork> works(1 + random() % 7);
  for (PrefillWork& work : works) {
    const int q_len = 1 + static_cast<int>(random() % 300);
    const int kv_len = static_cast<int>(random() % 160) - 10;
    const bool causal = random() % 4 != 0;
    const int window = causal && random() % 2 == 0 ? static_cast<int>(random() % 100) : -1;
    const int tiles = (q_len + Shape::kTileQ - 1) / Shape::kTileQ;
    work.valid = true;
    work.first_query = static_cast<int>(random() % static_cast<unsigned>(tiles)) * Shape::kTileQ;
    work.queries = std::min(Shape::kTileQ, q_len - work.first_query);
    work.keys = VisibleKeys(q_len, std::max(kv_len, 0), causal, window);
  }
  works.emplace_back();  // none is left
  return works;
}

// The first fault in so many sequences of tiles, each in three orders; "" when there is none.
template <class Shape>
std::string first_fault(int sequences, Mistake mistake) {
  std::mt19937 random(90);
  for (int i = 0; i < sequences; ++i) {
    const std::vector<PrefillWork> works = random_tiles<Shape>(random);
    std::vector<Steps> agents{CopyWarp<Shape>(works).run()};
    for (int w = 0; w < Shape::kWarpgroups; ++w) agents.push_back(MathWarpgroup<Shape>(works, w, mistake).run());
    for (int repeat = 0; repeat < 3; ++repeat)
      if (std::string fault = run_interleaved<Shape>(agents, random); !fault.empty()) return fault;
  }
  return "";
}

// Blocks of 16 keys, so that warpgroups of 64 rows see up to 8 blocks that others do not.
using TwoWarpgroupsTwoStages = FlashSm90Shape<64, 64, 2, 16, 2>;
using TwoWarpgroupsOneStage = FlashSm90Shape<64, 64, 2, 16, 1>;
using ThreeWarpgroupsTwoStages = FlashSm90Shape<64, 64, 3, 16, 2>;
using ThreeWarpgroupsOneStage = FlashSm90Shape<64, 64, 3, 16, 1>;
// And blocks that outlast a warpgroup's rows, as in most shapes.
using LongBlocks = FlashSm90Shape<64, 64, 2, 128, 1>;

TEST_CASE("flash_sm90: warps hand over stages without deadlock, and none reads what it does not expect",
          "[attention][prefill][flash_sm90]") {
  CHECK(first_fault<TwoWarpgroupsTwoStages>(300, Mistake::none).empty());
  CHECK(first_fault<TwoWarpgroupsOneStage>(300, Mistake::none).empty());
  CHECK(first_fault<ThreeWarpgroupsTwoStages>(300, Mistake::none).empty());
  CHECK(first_fault<ThreeWarpgroupsOneStage>(300, Mistake::none).empty());
  CHECK(first_fault<LongBlocks>(300, Mistake::none).empty());
}

TEST_CASE("flash_sm90: the model of its warps finds queries released before they arrived, and a deadlock",
          "[attention][prefill][flash_sm90]") {
  CHECK_FALSE(first_fault<ThreeWarpgroupsOneStage>(300, Mistake::queries_released_unseen).empty());
  CHECK(first_fault<ThreeWarpgroupsOneStage>(300, Mistake::two_blocks_skipped_within_a_stream) == "deadlock");
}

}  // namespace
}  // namespace inferometer
