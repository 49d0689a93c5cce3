// The steps by which the copying warps and the math warpgroups of flash_sm90 hand stages to each other: as
// flash_sm90_copy.cuh and flash_sm90_math.cuh take them, function by function under the same names, with nothing done
// in between. A warpgroup is one agent: its warps do the same, and what one of them waits for, all do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/attention_prefill/flash_sm90_ring.hpp"
#include "kernels/attention_prefill/flash_sm90_work.hpp"

namespace inferometer::test {

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

// What a kernel could get wrong here, for the model to find.
enum class Mistake {
  none,
  queries_before_keys,
  queries_released_unseen,
  keys_released_unchecked,
  two_blocks_skipped_within_a_stream
};

template <class Shape>
struct Stages {
  static constexpr int kWork = Shape::kWorkStages;
  static int work(std::uint32_t i) { return static_cast<int>(i); }
  static int q(int warpgroup, std::uint32_t i) { return kWork + warpgroup * Shape::kQStages + static_cast<int>(i); }
  static int k(std::uint32_t i) { return kWork + Shape::kWarpgroups * Shape::kQStages + static_cast<int>(i); }
  static int v(std::uint32_t i) { return k(Shape::kKStages) + static_cast<int>(i); }
  static int wanted() { return v(Shape::kVStages); }  // a barrier alone
  static constexpr int kCount = kWork + Shape::kWarpgroups * Shape::kQStages + Shape::kKStages + Shape::kVStages + 1;
  // Agents that read a stage: the warpgroup that queries are for; of a tile's work, the one that copies values too.
  static int readers(int stage) {
    if (stage >= q(0, 0) && stage < k(0)) return 1;
    return Shape::kWarpgroups + (stage < kWork ? 1 : 0);
  }
};

inline unsigned block_of(std::uint32_t tile, int block) { return tile * 1000 + static_cast<unsigned>(block); }

template <class OneRing>
void fill(Steps& steps, int stage, const OneRing& ring, unsigned contents) {
  steps.push_back({Act::wait_read, stage, ring.parity() ^ 1});
  steps.push_back({Act::copy, stage, contents});
}

template <class Shape>
class TileFinder {
 public:
  explicit TileFinder(const std::vector<PrefillWork>& tiles) : works(tiles) {}

  // Called first() and next() in the kernel, by what number the tile has.
  bool find(Steps& steps) {
    const std::uint32_t tile = slot.uses;
    const int stage = Stages<Shape>::work(slot.stage());
    steps.push_back({Act::wait_read, stage, slot.parity() ^ 1});
    steps.push_back({Act::write, stage, tile});
    steps.push_back({Act::arrive_ready, stage, 0});
    slot.advance();
    return works[tile].valid;
  }

 private:
  const std::vector<PrefillWork>& works;
  Ring<Shape::kWorkStages> slot;
};

template <class Shape>
Steps find_tiles(const std::vector<PrefillWork>& works) {
  Steps steps;
  TileFinder<Shape> finder(works);
  Ring<1> wanted;
  for (bool found = finder.find(steps); found; found = finder.find(steps)) {
    steps.push_back({Act::wait_ready, Stages<Shape>::wanted(), wanted.parity()});
    wanted.advance();
  }
  return steps;
}

template <class Shape>
class QueryKeyWarp {
 public:
  QueryKeyWarp(const std::vector<PrefillWork>& tiles, Mistake made) : works(tiles), mistake(made), finder(tiles) {
    if (Shape::kTeams > 1) finder.find(steps);
  }

  Steps run() {
    std::uint32_t work = enter_tile();
    while (works[work].valid) work = copy_tile(work);
    return steps;
  }

 private:
  using At = Stages<Shape>;

  std::uint32_t enter_tile() {
    const std::uint32_t work = slot.uses;
    steps.push_back({Act::wait_ready, At::work(slot.stage()), slot.parity()});
    if (works[work].valid) steps.push_back({Act::begin_read, At::work(slot.stage()), work});
    if (works[work].valid && !tile_blocks<Shape>(works[work]).empty()) copy_queries(work);
    slot.advance();
    return work;
  }

  std::uint32_t copy_tile(std::uint32_t work) {
    const KeyBlocks blocks = tile_blocks<Shape>(works[work]);
    int block = blocks.end - 1;
    if (Shape::kTeams == 1) {
      while (block >= blocks.begin + 2) copy_keys(work, block--);
      steps.push_back({Act::arrive_ready, At::wanted(), 0});
    } else {
      while (block >= std::max(blocks.begin, blocks.end - Shape::kKStages)) copy_keys(work, block--);
      finder.find(steps);
    }
    const bool too_soon = mistake == Mistake::queries_before_keys;
    const std::uint32_t next = too_soon ? enter_tile() : 0;
    while (block >= blocks.begin) copy_keys(work, block--);
    steps.push_back({Act::end_read, At::work(work % At::kWork), work});
    return too_soon ? next : enter_tile();
  }

  void copy_queries(std::uint32_t work) {
    for (int w = 0; w < Shape::kWarpgroups; ++w) fill(steps, At::q(w, q.stage()), q, work);
    q.advance();
  }
  void copy_keys(std::uint32_t work, int block) {
    fill(steps, At::k(k.stage()), k, block_of(work, block));
    k.advance();
  }

  const std::vector<PrefillWork>& works;
  const Mistake mistake;
  Steps steps;
  TileFinder<Shape> finder;  // of two teams
  Ring<At::kWork> slot;
  Ring<Shape::kQStages> q;
  Ring<Shape::kKStages> k;
};

template <class Shape>
class ValueWarp {
 public:
  explicit ValueWarp(const std::vector<PrefillWork>& tiles) : works(tiles) {}

  Steps run() {
    while (true) {
      const std::uint32_t work = slot.uses;
      const int stage = At::work(slot.stage());
      steps.push_back({Act::wait_ready, stage, slot.parity()});
      if (!works[work].valid) return steps;
      steps.push_back({Act::begin_read, stage, work});
      const KeyBlocks blocks = tile_blocks<Shape>(works[work]);
      for (int block = blocks.end - 1; block >= blocks.begin; --block) {
        fill(steps, At::v(v.stage()), v, block_of(work, block));
        v.advance();
      }
      steps.push_back({Act::end_read, stage, work});
      steps.push_back({Act::arrive_read, stage, 0});
      slot.advance();
    }
  }

 private:
  using At = Stages<Shape>;

  const std::vector<PrefillWork>& works;
  Steps steps;
  Ring<At::kWork> slot;
  Ring<Shape::kVStages> v;
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
    settled = mine.settled;
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
      release_queries(q.stage());
      q.advance();
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
  // And trusting_block, where the kernel takes that.
  void next_block() {
    const int trusted_end = last_block + (Shape::kQStages == 1 ? 1 : 0);
    const bool trusting = Shape::kTrusting && block > trusted_end && block <= settled;
    --block;
    issue_products(block + 1);
    if (!trusting) release_scores_operands();
    if (trusting && mistake == Mistake::keys_released_unchecked) {
      steps.push_back({Act::arrive_read, At::k(k.stage()), 0});
      wait_outputs(block + 1);
      steps.push_back({Act::end_read, At::q(id, q.stage()), tile});
      steps.push_back({Act::end_read, At::k(k.stage()), block_of(tile, block)});
      k.advance();
      if (block == last_block) release_queries(q.stage());
      return;
    }
    wait_outputs(block + 1);
    if (trusting) release_scores_operands();
  }
  bool next_tile() {
    const std::uint32_t left = tile;
    const int at = block;
    const int after = skipped_after;
    advance_slot();
    q.advance();
    const int most = mistake == Mistake::two_blocks_skipped_within_a_stream ? 2 : 1;
    if (after > 0 || !enter_tile() || block < last_block || skipped_before > most) {
      outputs(at);
      wait_outputs(at);
      for (int i = 0; i < after; ++i) skip_block();
      leave_tile(left);
      return false;
    }
    if (Shape::kQStages == 1) {
      follow_outputs(at);
    } else {
      for (int i = 0; i < skipped_before; ++i) skip_keys();
      wait_queries();
      issue_products(at);
      release_scores_operands();
      wait_outputs(at);
    }
    leave_tile(left);
    for (int i = 0; i < skipped_before; ++i) skip_values();
    values_of = tile;
    return true;
  }

  void follow_outputs(int values_block) {
    outputs(values_block);
    for (int i = 0; i < skipped_before; ++i) skip_keys();
    wait_queries();
    scores();
    pass_turn();
    wait_outputs(values_block);
    release_scores_operands();
  }

  void issue_products(int values_block) {
    scores();
    outputs(values_block);
    pass_turn();
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
    if (block == last_block) release_queries(q.stage());
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
  void release_queries(std::uint32_t stage) { steps.push_back({Act::arrive_read, At::q(id, stage), 0}); }
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
  Ring<Shape::kKStages> k;
  Ring<Shape::kVStages> v;
  Ring<Shape::kQStages> q;
  std::uint32_t tile = 0;
  std::uint32_t values_of = 0;  // the tile that P and the next values belong to
  bool holds_slot = false;
  int block = 0;
  int last_block = 0;
  int skipped_before = 0;
  int skipped_after = 0;
  int settled = -1;
};

}  // namespace inferometer::test
