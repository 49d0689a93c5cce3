// Every misuse is told by its fault and leaves the pool as it was, down to the order of its lists.
#include <functional>
#include <limits>

#include "tests/kernels/kv_cache/pool_support.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// Owned, shared, cached and free blocks, a pending copy, an id that has ended (3).
BlockPool busy_pool(bool prefix_reuse) {
  BlockPool pool({.num_blocks = 12, .block_size = 4, .prefix_reuse = prefix_reuse});
  start(pool, 3, consecutive(100, 10), 4);
  pool.free(3);
  start(pool, 1, consecutive(0, 10), 4);  // capacity 13
  pool.step_done();
  pool.fork(1, 2);
  pool.fork(1, 4);
  pool.append(1, consecutive(10, 1));
  return pool;
}

}  // namespace

TEST_CASE("block pool: every misuse is a typed error that changes nothing", "[kv_cache][block_pool]") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const Tokens token{5};
  struct Misuse {
    const char* what;
    BlockPoolFault fault;
    std::function<void(BlockPool&)> action;
  };
  using enum BlockPoolFault;
  const std::vector<Misuse> misuses{
      {"free twice", unknown_sequence, [](BlockPool& p) { p.free(3); }},
      {"abort after free", unknown_sequence, [](BlockPool& p) { p.abort(3); }},
      {"free what never was", unknown_sequence, [](BlockPool& p) { p.free(-9); }},
      {"append to unknown", unknown_sequence, [](BlockPool& p) { p.append(3); }},
      {"append tokens to unknown", unknown_sequence, [&](BlockPool& p) { p.append(3, token); }},
      {"fork unknown", unknown_sequence, [](BlockPool& p) { p.fork(3, 8); }},
      {"table of unknown", unknown_sequence, [](BlockPool& p) { (void)p.table(3); }},
      {"length of unknown", unknown_sequence, [](BlockPool& p) { (void)p.length(3); }},
      {"capacity of unknown", unknown_sequence, [](BlockPool& p) { (void)p.capacity(3); }},
      {"fill of unknown", unknown_sequence, [](BlockPool& p) { (void)p.last_block_fill(3); }},
      {"needs of unknown", unknown_sequence, [](BlockPool& p) { (void)p.blocks_to_append(3, 1); }},
      {"submit a live id", live_sequence, [](BlockPool& p) { p.submit(2, 4, 1); }},
      {"submit tokens under a live id", live_sequence, [](BlockPool& p) { p.submit(2, consecutive(100, 10), 1); }},
      {"fork to a live id", live_sequence, [](BlockPool& p) { p.fork(1, 2); }},
      {"fork to itself", live_sequence, [](BlockPool& p) { p.fork(1, 1); }},
      {"empty prompt", empty_prompt, [](BlockPool& p) { p.submit(9, 0, 1); }},
      {"empty prompt of tokens", empty_prompt, [](BlockPool& p) { p.submit(9, Tokens{}, 1); }},
      {"negative prompt", wrong_size, [](BlockPool& p) { p.submit(9, -1, 1); }},
      {"least prompt", wrong_size, [](BlockPool& p) { p.submit(9, kLeast, kLeast); }},
      {"negative max_new", wrong_size, [](BlockPool& p) { p.submit(9, 4, -1); }},
      {"negative append", wrong_size, [](BlockPool& p) { p.append(2, -1); }},
      {"needs of a negative append", wrong_size, [](BlockPool& p) { (void)p.blocks_to_append(2, kLeast); }},
      {"never fits", never_fits, [](BlockPool& p) { p.submit(9, 48, 2); }},
      {"never fits by far", never_fits, [](BlockPool& p) { p.submit(9, 1, kMost); }},
      {"never fits as tokens", never_fits, [](BlockPool& p) { p.submit(9, consecutive(100, 49), 1); }},
      {"check of what never fits", never_fits, [](BlockPool& p) { p.check_fits(49, 1); }},
      {"append past capacity", past_capacity, [](BlockPool& p) { p.append(2, 4); }},
      {"append tokens past capacity", past_capacity, [](BlockPool& p) { p.append(2, consecutive(0, 4)); }},
      {"append far past capacity", past_capacity, [](BlockPool& p) { p.append(2, kMost); }},
      {"end a step before its copies", copies_pending, [](BlockPool& p) { p.step_done(); }},
      {"fork what is not computed", uncomputed, [](BlockPool& p) { p.fork(1, 8); }},
      {"references of no block", unknown_block, [](BlockPool& p) { (void)p.references(12); }},
      {"references of a negative block", unknown_block, [](BlockPool& p) { (void)p.references(-1); }},
  };
  for (const bool prefix_reuse : {false, true}) {
    BlockPool pool = busy_pool(prefix_reuse);
    const BlockPool before = pool;
    for (const Misuse& misuse : misuses) {
      CAPTURE(misuse.what, prefix_reuse);
      CHECK(fault_of([&] { misuse.action(pool); }) == misuse.fault);
      CHECK(pool == before);
    }
    require_sound(pool);
  }
}

TEST_CASE("block pool: an append that finds the pool full changes nothing", "[kv_cache][block_pool]") {
  BlockPool pool = busy_pool(true);
  pool.submit(9, 48, 1);
  const BlockPool before = pool;
  CHECK_THROWS_WITH(pool.append(9, 40), "40 more tokens of sequence 9 need 10 blocks; 6 of 12 are free and 2 cached");
  CHECK(fault_of([&] { pool.append(9, consecutive(0, 33)); }) == BlockPoolFault::full);
  CHECK(pool == before);
  pool.append(9, 32);  // all that is free or cached
  CHECK(pool.available_blocks() == 0);
  require_sound(pool);
}

TEST_CASE("block pool: two pools are equal only when all their state is", "[kv_cache][block_pool]") {
  const BlockPool pool = busy_pool(true);
  const auto differs_after = [&](const std::function<void(BlockPool&)>& action) {
    BlockPool other = pool;
    CHECK(other == pool);
    action(other);
    return !(other == pool);
  };
  CHECK(differs_after([](BlockPool& p) { p.append(2); }));
  CHECK(differs_after([](BlockPool& p) { p.submit(9, 4, 1); }));
  CHECK(differs_after([](BlockPool& p) { p.copies_made(); }));
  CHECK(differs_after([](BlockPool& p) { p.abort(4); }));
  BlockPool copied = pool;
  copied.copies_made();
  BlockPool computed = copied;
  computed.step_done();
  CHECK_FALSE(computed == copied);
  CHECK(differs_after([](BlockPool& p) {  // the same sequences and counts, the cached blocks used in another order
    p.submit(9, consecutive(100, 5), 1);
    p.free(9);
  }));
}
