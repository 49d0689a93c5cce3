#include "tests/kernels/kv_cache/pool_support.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

std::vector<BlockCopy> copies(const BlockPool& pool) {
  return {pool.pending_copies().begin(), pool.pending_copies().end()};
}

// A pool of 8 blocks of 16 with sequence 1 of `tokens` tokens and its fork, 2.
BlockPool forked(std::int64_t tokens) {
  BlockPool pool({.num_blocks = 8, .block_size = 16});
  pool.submit(1, tokens, 40);
  pool.append(1, tokens);
  pool.step_done();
  pool.fork(1, 2);
  return pool;
}

}  // namespace

TEST_CASE("copy on write: the first append after a fork copies one block, the sibling then writes in place",
          "[kv_cache][block_pool]") {
  BlockPool pool = forked(20);
  const std::vector shared(pool.table(1).begin(), pool.table(1).end());
  REQUIRE(shared.size() == 2);
  CHECK(std::ranges::equal(pool.table(2), shared));
  CHECK(pool.references(shared[0]) == 2);
  CHECK(pool.references(shared[1]) == 2);
  CHECK(pool.usage().owned_blocks == 2);
  CHECK(pool.usage().saved_blocks == 2);
  CHECK(pool.usage().tokens - pool.usage().filled_slots == 20);

  CHECK(pool.blocks_to_append(1, 1) == 1);
  pool.append(1);
  const std::int32_t own = pool.table(1)[1];
  CHECK(copies(pool) == std::vector<BlockCopy>{{.source = shared[1], .destination = own}});
  CHECK(pool.references(shared[1]) == 1);
  CHECK(pool.references(own) == 1);

  CHECK(pool.blocks_to_append(2, 1) == 0);
  pool.append(2);
  CHECK(pool.table(2)[1] == shared[1]);
  CHECK(copies(pool).size() == 1);
  CHECK(pool.references(shared[0]) == 2);
  CHECK(pool.usage().saved_blocks == 1);
  CHECK(pool.usage().tokens - pool.usage().filled_slots == 16);
  require_sound(pool);
  pool.copies_made();
  CHECK(pool.pending_copies().empty());
  CHECK(pool.usage().copied_blocks == 1);
  require_sound(pool);
}

TEST_CASE("copy on write: full blocks are never copied", "[kv_cache][block_pool]") {
  BlockPool pool = forked(32);
  pool.append(1);
  pool.append(2);
  CHECK(pool.pending_copies().empty());
  CHECK(pool.table(1)[2] != pool.table(2)[2]);
  CHECK(pool.usage().saved_blocks == 2);
  require_sound(pool);
}

TEST_CASE("copy on write: of several forks all but the last to append copy, from the same block",
          "[kv_cache][block_pool]") {
  BlockPool pool = forked(20);
  pool.fork(1, 3);
  const std::int32_t shared = pool.table(1)[1];
  for (const SequenceId id : {3, 1, 2}) pool.append(id);
  REQUIRE(copies(pool).size() == 2);
  for (const BlockCopy& copy : copies(pool)) CHECK(copy.source == shared);
  CHECK(pool.table(2)[1] == shared);
  CHECK(pool.references(pool.table(1)[0]) == 3);
  require_sound(pool);
}

TEST_CASE("copy on write: an append of many tokens copies once and takes the blocks that follow",
          "[kv_cache][block_pool]") {
  BlockPool pool = forked(20);
  CHECK(pool.blocks_to_append(2, 30) == 3);  // 50 tokens: 4 blocks, of which the second is copied
  pool.append(2, 30);
  CHECK(pool.table(2).size() == 4);
  CHECK(pool.table(2)[0] == pool.table(1)[0]);
  CHECK(copies(pool) == std::vector<BlockCopy>{{.source = pool.table(1)[1], .destination = pool.table(2)[1]}});
  pool.append(1, 0);  // no token, no copy
  CHECK(copies(pool).size() == 1);
  require_sound(pool);
}

TEST_CASE("copy on write: a copy that finds no block is refused and changes nothing", "[kv_cache][block_pool]") {
  BlockPool pool({.num_blocks = 2, .block_size = 16});
  pool.submit(1, 20, 4);
  pool.append(1, 20);
  pool.step_done();
  pool.fork(1, 2);
  const BlockPool before = pool;
  CHECK(fault_of([&] { pool.append(1); }) == BlockPoolFault::full);
  CHECK(pool == before);
  pool.abort(2);
  pool.append(1);  // alone now, in place
  CHECK(pool.pending_copies().empty());
}

TEST_CASE("copy on write: no block is given away while a pending copy reads or writes it", "[kv_cache][block_pool]") {
  BlockPool pool = forked(20);
  pool.append(1);
  const BlockCopy copy = pool.pending_copies()[0];
  pool.abort(1);
  pool.abort(2);
  CHECK(pool.usage().owned_blocks == 2);  // the copy's own, in no table
  CHECK(pool.usage().filled_slots == 0);
  require_sound(pool);
  pool.submit(3, 96, 1);
  pool.append(3, 96);  // all that is free
  for (const std::int32_t block : pool.table(3)) CHECK((block != copy.source && block != copy.destination));
  CHECK(pool.available_blocks() == 0);
  pool.copies_made();
  CHECK(pool.usage().free_blocks == 2);
  require_sound(pool);
}

TEST_CASE("copy on write: what is not written yet is not shared", "[kv_cache][block_pool]") {
  BlockPool pool = forked(20);
  pool.append(1);
  const BlockPool before = pool;
  CHECK(fault_of([&] { pool.fork(1, 3); }) == BlockPoolFault::uncomputed);
  CHECK(fault_of([&] { pool.step_done(); }) == BlockPoolFault::copies_pending);
  CHECK(pool == before);
  pool.copies_made();
  pool.step_done();
  pool.fork(1, 3);
  pool.append(1);
  CHECK(pool.pending_copies().size() == 1);
  require_sound(pool);
}

TEST_CASE("copy on write: a fork has the capacity of its parent and outlives it", "[kv_cache][block_pool]") {
  BlockPool pool({.num_blocks = 8, .block_size = 16});
  pool.submit(1, 20, 5);
  pool.append(1, 20);
  pool.step_done();
  pool.fork(1, 2);
  pool.free(1);
  CHECK(pool.length(2) == 20);
  CHECK(pool.usage().owned_blocks == 2);
  pool.append(2, 4);
  CHECK(pool.pending_copies().empty());
  CHECK(fault_of([&] { pool.append(2); }) == BlockPoolFault::past_capacity);
  pool.free(2);
  CHECK(pool.usage().free_blocks == 8);
  require_sound(pool);
}
