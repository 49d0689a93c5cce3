#include "tests/kernels/kv_cache/pool_support.hpp"

using namespace inferometer;
using namespace inferometer::test;

TEST_CASE("block pool: the bookkeeping of a block takes what is said, and less than 64 bytes",
          "[kv_cache][block_pool]") {
  for (const std::int32_t num_blocks : {1, 2, 1000, 1025, 65'536, 65'537})
    for (const std::int32_t block_size : {1, 16})
      for (const bool prefix_reuse : {false, true}) {
        CAPTURE(num_blocks, block_size, prefix_reuse);
        const BlockPoolConfig config{.num_blocks = num_blocks, .block_size = block_size, .prefix_reuse = prefix_reuse};
        CountingMemory memory;
        const BlockPool pool(config, &memory);
        const std::int64_t token_bytes = prefix_reuse ? std::int64_t{4} * num_blocks * block_size : 0;
        // Without blocks the prefix index still has one bucket, of 4 bytes.
        const std::int64_t unused_bucket = prefix_reuse ? 0 : 4;
        const double per_block =
            static_cast<double>(memory.bytes - token_bytes - unused_bucket) / static_cast<double>(num_blocks);
        CHECK(per_block == Approx(BlockPool::bytes_per_block(config)));
        CHECK(per_block < 64);
      }
}

TEST_CASE("block pool: append and copy on write allocate nothing, and neither does the next sequence's table",
          "[kv_cache][block_pool]") {
  for (const bool prefix_reuse : {false, true}) {
    CountingMemory memory;
    BlockPool pool({.num_blocks = 64, .block_size = 4, .prefix_reuse = prefix_reuse}, &memory);
    pool.submit(1, 10, 100);
    pool.append(1, 10);
    pool.step_done();
    for (SequenceId id = 2; id < 6; ++id) pool.fork(1, id);
    const std::int64_t before = memory.allocations;
    for (int t = 0; t < 20; ++t)
      for (SequenceId id = 1; id < 6; ++id) pool.append(id, consecutive(0, 2));
    REQUIRE(pool.pending_copies().size() == 4);
    pool.copies_made();
    for (SequenceId id = 1; id < 6; ++id) pool.free(id);
    CHECK(memory.allocations == before);
    pool.submit(7, 10, 100);
    CHECK(memory.allocations == before + 1);  // the id's node in the map
    require_sound(pool);
  }
}

TEST_CASE("block pool: a refused allocation leaves the pool as it was", "[kv_cache][block_pool]") {
  CountingMemory memory;
  BlockPool pool({.num_blocks = 16, .block_size = 4, .prefix_reuse = true}, &memory);
  start(pool, 1, consecutive(0, 10), 4);
  pool.append(1, consecutive(10, 1));
  // Grants one allocation more each time, until the action succeeds; returns how often it was refused.
  const auto refuse_each = [&](const auto& action) {
    const BlockPool before = pool;  // NOLINT(performance-unnecessary-copy-initialization): the action changes `pool`
    for (std::int64_t granted = 0;; ++granted) {
      memory.refuse_after = granted;
      try {
        action();
        memory.refuse_after = -1;
        return granted;
      } catch (const std::bad_alloc&) {
        memory.refuse_after = -1;
        CAPTURE(granted);
        CHECK(pool == before);
        require_sound(pool);
      }
    }
  };
  CHECK(refuse_each([&] { pool.submit(2, consecutive(0, 10), 30); }) > 0);
  CHECK(pool.length(2) == 8);
  pool.abort(2);
  pool.step_done();
  CHECK(refuse_each([&] { pool.fork(1, 3); }) > 0);
  CHECK(pool.length(3) == 11);
  require_sound(pool);
}

TEST_CASE("block pool: everything allocated is given back", "[kv_cache][block_pool]") {
  CountingMemory memory;
  {
    BlockPool pool({.num_blocks = 16, .block_size = 4, .prefix_reuse = true}, &memory);
    start(pool, 1, consecutive(0, 10), 4);
    pool.step_done();
    pool.fork(1, 2);
    pool.append(2, 1);
    pool.free(1);
    CHECK(memory.bytes > 0);
  }
  CHECK(memory.bytes == 0);
}
