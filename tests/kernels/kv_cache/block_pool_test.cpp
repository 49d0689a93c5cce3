#include "kernels/kv_cache/block_pool.hpp"

#include <limits>
#include <utility>

#include "harness/operator/fields.hpp"
#include "tests/kernels/kv_cache/pool_support.hpp"

using namespace inferometer;
using namespace inferometer::test;

TEST_CASE("block pool: lengths around block edges take as many blocks as they fill", "[kv_cache][block_pool]") {
  struct Row {
    std::int64_t length, blocks;
    int fill;
  };
  for (const Row row : {Row{1, 1, 1}, {15, 1, 15}, {16, 1, 16}, {17, 2, 1}, {32, 2, 16}, {33, 3, 1}}) {
    CAPTURE(row.length);
    BlockPool pool({.num_blocks = 8, .block_size = 16});
    pool.submit(1, row.length, 1);
    CHECK(pool.table(1).empty());
    CHECK(pool.last_block_fill(1) == 0);
    CHECK(pool.blocks_to_append(1, row.length) == row.blocks);
    pool.append(1, row.length);
    pool.submit(2, row.length, 1);
    for (std::int64_t t = 0; t < row.length; ++t) pool.append(2);
    for (const SequenceId id : {1, 2}) {
      CHECK(std::ssize(pool.table(id)) == row.blocks);
      CHECK(pool.length(id) == row.length);
      CHECK(pool.last_block_fill(id) == row.fill);
    }
    const BlockPoolUsage usage = pool.usage();
    CHECK(usage.owned_blocks == 2 * row.blocks);
    CHECK(usage.free_blocks == 8 - 2 * row.blocks);
    CHECK(usage.tokens == 2 * row.length);
    CHECK(usage.filled_slots == 2 * row.length);
    require_sound(pool);
  }
}

TEST_CASE("block pool: every token of every sequence has a slot of its own", "[kv_cache][block_pool]") {
  BlockPool pool({.num_blocks = 12, .block_size = 4});
  pool.submit(1, 9, 1);
  pool.submit(2, 18, 1);
  for (int t = 0; t < 9; ++t) {  // in turn, so that the blocks of the two interleave
    pool.append(1);
    pool.append(2, 2);
  }
  std::set<std::pair<std::int32_t, std::int64_t>> slots;
  for (const SequenceId id : {1, 2})
    for (std::int64_t t = 0; t < pool.length(id); ++t)
      slots.insert({pool.table(id)[static_cast<std::size_t>(t / 4)], t % 4});
  CHECK(slots.size() == 9 + 18);
}

TEST_CASE("block pool: what can never fit is refused when submitted, with the figures", "[kv_cache][block_pool]") {
  BlockPool pool({.num_blocks = 4, .block_size = 16});
  pool.submit(1, 64, 1);
  pool.append(1, 64);
  CHECK(pool.usage().free_blocks == 0);
  pool.free(1);

  const BlockPool before = pool;
  CHECK_THROWS_WITH(pool.submit(2, 64, 2),
                    "a prompt of 64 tokens and max_new 2 store 65 tokens, which need 5 blocks of 16; the pool has 4");
  CHECK(fault_of([&] { pool.submit(2, 64, 2); }) == BlockPoolFault::never_fits);
  CHECK(fault_of([&] { pool.check_fits(64, 2); }) == BlockPoolFault::never_fits);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(fault_of([&] { pool.submit(2, kMost, kMost); }) == BlockPoolFault::never_fits);
  CHECK(pool == before);

  pool.submit(3, 60, 4);  // nobody waits behind the refused one
  pool.append(3, 60);
  CHECK(pool.length(3) == 60);
}

TEST_CASE("block pool: a submitted sequence takes no block before it is appended to", "[kv_cache][block_pool]") {
  BlockPool pool({.num_blocks = 4, .block_size = 16});
  for (SequenceId id = 0; id < 10; ++id) pool.submit(id, 64, 1);  // each fits alone, all of them do not
  CHECK(pool.usage().free_blocks == 4);
  pool.append(0, 49);
  CHECK(pool.available_blocks() == 0);
  CHECK(fault_of([&] { pool.append(1); }) == BlockPoolFault::full);
  CHECK(pool.blocks_to_append(1, 17) == 2);
  pool.append(0, 15);  // to the last slot of the last block
  CHECK(pool.length(0) == 64);
}

TEST_CASE("block pool: empty prompts are refused, and without new tokens nothing is held", "[kv_cache][block_pool]") {
  for (const bool prefix_reuse : {false, true}) {
    BlockPool pool({.num_blocks = 4, .block_size = 4, .prefix_reuse = prefix_reuse});
    CHECK(fault_of([&] { pool.submit(1, Tokens{}, 5); }) == BlockPoolFault::empty_prompt);
    CHECK(fault_of([&] { pool.submit(1, 0, 5); }) == BlockPoolFault::empty_prompt);
    CHECK_FALSE(pool.contains(1));

    start(pool, 1, consecutive(0, 8), 2);
    pool.append(1);
    CHECK(pool.submit(2, consecutive(0, 8), 0) == 0);
    CHECK(pool.capacity(2) == 0);
    CHECK(pool.table(2).empty());
    CHECK(fault_of([&] { pool.append(2); }) == BlockPoolFault::past_capacity);
    pool.submit(3, 1'000'000, 0);  // a prompt that is never stored may have any length
    pool.free(2);
    pool.free(3);
    require_sound(pool);
  }
}

TEST_CASE("block pool: an id is refused while it lives and accepted after its end", "[kv_cache][block_pool]") {
  BlockPool pool({.num_blocks = 8, .block_size = 4});
  pool.submit(7, 6, 2);
  pool.append(7, 6);
  const BlockPool before = pool;
  CHECK(fault_of([&] { pool.submit(7, 3, 1); }) == BlockPoolFault::live_sequence);
  CHECK(fault_of([&] { pool.fork(7, 7); }) == BlockPoolFault::live_sequence);
  CHECK(pool == before);
  pool.free(7);
  pool.submit(7, 3, 1);
  CHECK(pool.length(7) == 0);
  pool.abort(7);
  pool.submit(7, 3, 1);
  CHECK(pool.contains(7));
}

TEST_CASE("block pool: OPT-13B's blocks hold seven sequences of 2048 tokens, and as many more as are shorter",
          "[kv_cache][block_pool]") {
  // 12 GiB at 800 KiB a token are 15,728 slots: 983 blocks of 16. Kwon et al. 2023, section 3.
  constexpr std::int64_t kSlots = (std::int64_t{12} << 30) / (800 << 10);
  static_assert(kSlots == 15'728);
  BlockPool pool({.num_blocks = kSlots / 16, .block_size = 16});
  REQUIRE(pool.num_blocks() == 983);
  SequenceId id = 0;
  for (; pool.available_blocks() >= pool.blocks_of(2048); ++id) {
    pool.submit(id, 2000, 49);
    pool.append(id, 2048);
  }
  CHECK(id == 7);
  CHECK(pool.usage().free_blocks * 16 == 1'392);
  while (id-- > 0) pool.free(id);
  // Sequences that announce 2048 tokens but have 300 take what they have.
  for (id = 0; pool.available_blocks() >= pool.blocks_of(300); ++id) {
    pool.submit(id, 200, 1849);
    pool.append(id, 300);
  }
  CHECK(id == 983 / 19);  // 300 tokens fill 19 blocks
  const BlockPoolUsage usage = pool.usage();
  CHECK(usage.owned_blocks * 16 - usage.filled_slots == id * 4);  // 19 blocks have 304 slots
}

TEST_CASE("block pool: blocks freed last are taken first, at first from the lowest", "[kv_cache][block_pool]") {
  BlockPool pool({.num_blocks = 4, .block_size = 1});
  pool.submit(1, 4, 1);
  pool.append(1, 3);
  CHECK(std::ranges::equal(pool.table(1), std::vector{0, 1, 2}));
  pool.free(1);
  pool.submit(2, 4, 1);
  pool.append(2, 4);
  CHECK(std::ranges::equal(pool.table(2), std::vector{0, 1, 2, 3}));
}

TEST_CASE("block pool: sizes below one are refused by name", "[kv_cache][block_pool]") {
  CHECK_THROWS_AS(BlockPool({.num_blocks = 0}), ProblemError);
  CHECK_THROWS_AS(BlockPool({.num_blocks = -1}), ProblemError);
  CHECK_THROWS_WITH(BlockPool({.num_blocks = 4, .block_size = 0}), "block_size must be at least 1, got 0");
  CHECK_THROWS_AS(BlockPool({.num_blocks = 4, .prefix_reuse = true, .block_hash = nullptr}), ProblemError);
}
