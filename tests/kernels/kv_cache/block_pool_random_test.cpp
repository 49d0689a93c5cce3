// Random use and misuse against an oracle that leaves all counting to std::shared_ptr.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "tests/kernels/kv_cache/pool_support.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

struct Block {};
using BlockHandle = std::shared_ptr<Block>;  // its use count is the reference count

class OraclePool {
 public:
  struct Sequence {
    std::vector<BlockHandle> table;
    std::int64_t length = 0;
    std::int64_t capacity = 0;
    bool computed = true;
  };
  using Fault = std::optional<BlockPoolFault>;

  explicit OraclePool(const BlockPoolConfig& config)
      : num_blocks_(config.num_blocks), block_size_(config.block_size), explicit_steps_(config.explicit_steps) {}

  Fault submit(SequenceId id, std::int64_t prompt, std::int64_t max_new) {
    if (prompt < 0 || max_new < 0) return BlockPoolFault::wrong_size;
    if (prompt == 0) return BlockPoolFault::empty_prompt;
    const std::int64_t capacity = max_new == 0 ? 0 : prompt + max_new - 1;
    if (blocks_of(capacity) > num_blocks_) return BlockPoolFault::never_fits;
    if (live.contains(id)) return BlockPoolFault::live_sequence;
    live[id].capacity = capacity;
    return {};
  }

  Fault append(SequenceId id, std::int64_t tokens) {
    if (!live.contains(id)) return BlockPoolFault::unknown_sequence;
    Sequence& s = live.at(id);
    if (tokens < 0) return BlockPoolFault::wrong_size;
    if (s.length + tokens > s.capacity) return BlockPoolFault::past_capacity;
    if (tokens == 0) return {};
    if (explicit_steps_ && !s.computed) return BlockPoolFault::uncomputed;
    const bool copy = s.length % block_size_ != 0 && tables_with(s.table.back()) > 1;
    const std::int64_t missing = blocks_of(s.length + tokens) - std::ssize(s.table);
    if (missing + (copy ? 1 : 0) > num_blocks_ - owned_blocks()) return BlockPoolFault::full;
    if (copy) {
      const BlockHandle own = std::make_shared<Block>();
      copies.emplace_back(s.table.back(), own);
      s.table.back() = own;
    }
    for (std::int64_t i = 0; i < missing; ++i) s.table.push_back(std::make_shared<Block>());
    s.length += tokens;
    s.computed = false;
    return {};
  }

  Fault fork(SequenceId parent, SequenceId child) {
    if (!live.contains(parent)) return BlockPoolFault::unknown_sequence;
    if (live.contains(child)) return BlockPoolFault::live_sequence;
    if (!live.at(parent).computed) return BlockPoolFault::uncomputed;
    live[child] = live.at(parent);
    return {};
  }

  Fault free(SequenceId id) {
    if (explicit_steps_ && live.contains(id) && !live.at(id).computed) return BlockPoolFault::uncomputed;
    return abort(id);
  }

  Fault abort(SequenceId id) {
    if (live.erase(id) == 0) return BlockPoolFault::unknown_sequence;
    return {};
  }

  Fault step_done() {
    if (!copies.empty()) return BlockPoolFault::copies_pending;
    for (auto& [id, s] : live) s.computed = true;
    return {};
  }

  std::int64_t tables_with(const BlockHandle& block) const {
    const auto held = std::ranges::count_if(
        copies, [&](const auto& pending) { return pending.first == block || pending.second == block; });
    return block.use_count() - held;
  }

  std::int64_t owned_blocks() const {
    std::set<BlockHandle> owned;
    for (const auto& [id, s] : live) owned.insert(s.table.begin(), s.table.end());
    for (const auto& [source, destination] : copies) owned.insert({source, destination});
    return std::ssize(owned);
  }

  std::int64_t blocks_of(std::int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }

  std::map<SequenceId, Sequence> live;
  std::vector<std::pair<BlockHandle, BlockHandle>> copies;  // source, destination

 private:
  std::int64_t num_blocks_;
  std::int64_t block_size_;
  bool explicit_steps_;
};

// Both pools hold the same sequences and share blocks between them in the same way.
void require_same(const BlockPool& pool, const OraclePool& oracle) {
  std::map<const Block*, std::int32_t> number;  // of the oracle's blocks in the pool
  const auto require_paired = [&](const BlockHandle& expected, std::int32_t block) {
    REQUIRE(number.emplace(expected.get(), block).first->second == block);
  };
  std::int64_t entries = 0;
  for (const auto& [id, s] : oracle.live) {
    CAPTURE(id);
    REQUIRE(pool.contains(id));
    REQUIRE(pool.length(id) == s.length);
    REQUIRE(pool.capacity(id) == s.capacity);
    REQUIRE(pool.table(id).size() == s.table.size());
    for (std::size_t i = 0; i < s.table.size(); ++i) {
      require_paired(s.table[i], pool.table(id)[i]);
      REQUIRE(pool.references(pool.table(id)[i]) == oracle.tables_with(s.table[i]));
    }
    entries += std::ssize(s.table);
  }
  REQUIRE(pool.pending_copies().size() == oracle.copies.size());
  for (std::size_t i = 0; i < oracle.copies.size(); ++i) {
    require_paired(oracle.copies[i].first, pool.pending_copies()[i].source);
    require_paired(oracle.copies[i].second, pool.pending_copies()[i].destination);
  }
  std::set<std::int32_t> numbers;
  for (const auto& [handle, block] : number) REQUIRE(numbers.insert(block).second);
  const BlockPoolUsage usage = pool.usage();
  REQUIRE(usage.owned_blocks == std::ssize(number));
  REQUIRE(usage.free_blocks + usage.owned_blocks == usage.total_blocks);
  REQUIRE(usage.table_entries == entries);
  REQUIRE(usage.sequences == std::ssize(oracle.live));
}

}  // namespace

TEST_CASE("block pool: 10000 random operations agree with an oracle, misuse included", "[kv_cache][block_pool]") {
  constexpr std::int32_t kBlocks = 40;
  constexpr std::int32_t kBlockSize = 4;
  const std::uint64_t seed = GENERATE(1, 2);
  const bool explicit_steps = GENERATE(false, true);
  CAPTURE(seed, explicit_steps);
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  const BlockPoolConfig config{.num_blocks = kBlocks, .block_size = kBlockSize, .explicit_steps = explicit_steps};
  BlockPool pool(config);
  OraclePool oracle(config);
  std::map<std::optional<BlockPoolFault>, int> outcomes;
  // An id that lives, or that does not: mostly.
  const auto draw = [&](bool live) {
    SequenceId id = below(16);
    for (int i = 0; i < 2 && oracle.live.contains(id) != live; ++i) id = below(16);
    return id;
  };
  for (int step = 0; step < 10'000; ++step) {
    CAPTURE(step);
    const SequenceId id = draw(true);
    const SequenceId unused = draw(false);
    const std::int64_t size = below(50) == 0 ? -1 : below(below(4) == 0 ? 30 : 4);
    const std::int64_t max_new = below(50) == 0 ? -1 : below(20) == 0 ? 400 : below(60);
    const BlockPool before = pool;
    std::optional<BlockPoolFault> expected;
    std::optional<BlockPoolFault> found;
    try {
      const std::int64_t choice = below(64);
      if (choice < 6) {
        expected = oracle.submit(unused, size, max_new);
        pool.submit(unused, size, max_new);
      } else if (choice < 18) {
        expected = oracle.fork(id, unused);
        pool.fork(id, unused);
      } else if (choice < 23) {
        expected = oracle.free(id);
        pool.free(id);
      } else if (choice < 28) {
        expected = oracle.abort(id);
        pool.abort(id);
      } else if (choice < 34) {
        oracle.copies.clear();
        pool.copies_made();
      } else if (choice < 42) {
        expected = oracle.step_done();
        pool.step_done();
      } else {
        expected = oracle.append(id, size);
        pool.append(id, size);
      }
    } catch (const BlockPoolError& error) {
      found = error.fault();
      REQUIRE(pool == before);
    }
    REQUIRE(found == expected);
    ++outcomes[found];
    require_sound(pool);
    require_same(pool, oracle);
  }
  using enum BlockPoolFault;
  for (const auto fault : {wrong_size, empty_prompt, live_sequence, unknown_sequence, never_fits, past_capacity, full,
                           copies_pending, uncomputed})
    CHECK(outcomes[fault] > 5);  // so that the test is about them too
  CHECK(outcomes[std::nullopt] > 3'000);
  CHECK(pool.usage().copied_blocks > 200);

  pool.copies_made();
  while (!oracle.live.empty()) {
    pool.abort(oracle.live.begin()->first);
    oracle.live.erase(oracle.live.begin());
  }
  require_sound(pool);
  CHECK(pool.usage().free_blocks == kBlocks);
}
