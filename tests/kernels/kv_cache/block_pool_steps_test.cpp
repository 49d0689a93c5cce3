// What is not computed yet is neither shared nor copied nor offered.
#include "tests/kernels/kv_cache/pool_support.hpp"
#include "tests/kernels/kv_cache/simulated_cache.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

BlockPool make_pool(bool explicit_steps) {
  return BlockPool({.num_blocks = 8, .block_size = 4, .prefix_reuse = true, .explicit_steps = explicit_steps});
}

}  // namespace

TEST_CASE("block pool: a fork behind an append of the same step is refused, and right after it",
          "[kv_cache][block_pool]") {
  const Tokens prompt = consecutive(0, 10);
  for (const bool explicit_steps : {false, true}) {
    CAPTURE(explicit_steps);
    BlockPool pool = make_pool(explicit_steps);
    SimulatedCache cache(pool);
    std::mt19937_64 random(1);
    start(pool, 1, prompt, 8);
    CHECK(pool.computed(1) == 0);
    const BlockPool before = pool;
    CHECK_THROWS_WITH(pool.fork(1, 2),
                      "sequence 1 cannot be forked before step_done(): only 0 of its 10 tokens are computed");
    CHECK(fault_of([&] { pool.fork(1, 2); }) == BlockPoolFault::uncomputed);
    CHECK(pool == before);
    CHECK(pool.reusable_tokens(prompt) == 0);

    cache.compute(pool.table(1), prompt, 0);
    pool.step_done();
    CHECK(pool.computed(1) == 10);
    pool.fork(1, 2);
    CHECK(pool.computed(2) == 10);
    pool.append(2, consecutive(10, 1));
    CHECK(pool.computed(2) == 10);
    REQUIRE(pool.pending_copies().size() == 1);
    cache.make_copies(pool.pending_copies(), random);
    pool.copies_made();
    CHECK(pool.reusable_tokens(prompt) == 8);
    cache.compute(pool.table(2), consecutive(0, 11), 10);
    CHECK(cache.holds(pool.table(2), consecutive(0, 11)));
    CHECK(cache.holds(pool.table(1), prompt));
    require_sound(pool);
  }
}

TEST_CASE("block pool: a fork offers of its parent's blocks what was computed before it", "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(true);
  const Tokens tokens = consecutive(0, 13);
  start(pool, 1, consecutive(0, 6), 8);
  pool.step_done();
  pool.fork(1, 2);
  pool.append(1, tail(tokens, 6));  // fills blocks 2 and 3 of the table in this step
  pool.append(2, consecutive(50, 1));
  CHECK(pool.reusable_tokens(tokens) == 4);
  pool.abort(2);
  pool.abort(1);
  CHECK(pool.usage().cached_blocks == 1);
  CHECK(pool.reusable_tokens(tokens) == 4);
  pool.copies_made();
  require_sound(pool);
}

TEST_CASE("block pool: with explicit steps a second append or a free in a step is refused", "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(true);
  const Tokens prompt = consecutive(0, 10);
  pool.submit(1, prompt, 8);
  pool.append(1, std::span(prompt).first(9));
  const BlockPool before = pool;
  CHECK(fault_of([&] { pool.append(1, tail(prompt, 9)); }) == BlockPoolFault::uncomputed);
  CHECK(fault_of([&] { pool.append(1); }) == BlockPoolFault::uncomputed);
  CHECK(fault_of([&] { (void)pool.blocks_to_append(1, 1); }) == BlockPoolFault::uncomputed);
  CHECK(fault_of([&] { pool.free(1); }) == BlockPoolFault::uncomputed);
  pool.append(1, 0);  // nothing to compute
  CHECK(pool == before);

  SECTION("and aborted it leaves nothing to reuse") {
    pool.abort(1);
    CHECK(pool.reusable_tokens(prompt) == 0);
    CHECK(pool.usage().cached_blocks == 0);
  }
  SECTION("in the next step it is accepted") {
    pool.step_done();
    pool.append(1, tail(prompt, 9));
    CHECK(pool.computed(1) == 9);
    CHECK(pool.reusable_tokens(prompt) == 8);
    pool.abort(1);
    CHECK(pool.usage().cached_blocks == 2);
  }
  SECTION("aborted after the step, it leaves what was computed") {
    pool.step_done();
    pool.abort(1);
    CHECK(pool.reusable_tokens(prompt) == 8);
  }
  require_sound(pool);
}
