#include "tests/kernels/kv_cache/pool_support.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

std::uint64_t always_collides(std::uint64_t, std::span<const TokenId>) { return 42; }

BlockPool make_pool(std::int32_t num_blocks, BlockHash hash = &hash_block_tokens) {
  return BlockPool({.num_blocks = num_blocks, .block_size = 4, .prefix_reuse = true, .block_hash = hash});
}

// Leaves the full blocks of the prompt cached.
void run(BlockPool& pool, const Tokens& prompt) {
  start(pool, 1000, prompt, 1);
  pool.free(1000);
}

Tokens joined(Tokens front, const Tokens& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

}  // namespace

TEST_CASE("prefix reuse: full blocks that agree from the first token on are reused", "[kv_cache][block_pool]") {
  for (const BlockHash hash : {&hash_block_tokens, &always_collides}) {
    BlockPool pool = make_pool(16, hash);
    const Tokens first = consecutive(0, 16);
    CHECK(start(pool, 1, first, 2) == 0);
    pool.append(1);
    const Tokens second = joined(consecutive(0, 10), consecutive(50, 4));  // 14 tokens, the first 10 shared
    CHECK(pool.reusable_tokens(second) == 8);
    CHECK(start(pool, 2, second, 2) == 8);
    CHECK(std::ranges::equal(pool.table(2).first(2), pool.table(1).first(2)));
    CHECK(pool.references(pool.table(1)[1]) == 2);
    CHECK(pool.references(pool.table(1)[2]) == 1);
    CHECK(pool.usage().saved_blocks == 2);
    CHECK(pool.usage().tokens - pool.usage().filled_slots == 8);
    CHECK(pool.usage().reused_tokens == 8);
    require_sound(pool);
  }
}

TEST_CASE("prefix reuse: of a prompt that is held whole the last token is computed again", "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(16);
  const Tokens prompt = consecutive(0, 16);
  run(pool, prompt);
  CHECK(pool.usage().cached_blocks == 4);
  CHECK(start(pool, 1, prompt, 4) == 12);
  CHECK(pool.usage().cached_blocks == 1);
  CHECK(start(pool, 2, consecutive(0, 17), 4) == 16);  // one token more: the fourth block is in front of it
  CHECK(pool.usage().cached_blocks == 0);
  require_sound(pool);
}

TEST_CASE("prefix reuse: a shared block ends with its last holder", "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(8);
  run(pool, consecutive(0, 8));
  start(pool, 1, consecutive(0, 9), 1);
  start(pool, 2, consecutive(0, 9), 1);
  const std::int32_t shared = pool.table(1)[0];
  CHECK(pool.references(shared) == 2);
  pool.free(1);
  CHECK(pool.references(shared) == 1);
  CHECK(pool.usage().cached_blocks == 0);
  pool.free(2);
  CHECK(pool.references(shared) == 0);
  CHECK(pool.usage().cached_blocks == 2);
  CHECK(pool.usage().free_blocks == 6);
  require_sound(pool);
}

TEST_CASE("prefix reuse: blocks are offered once they have certainly been computed", "[kv_cache][block_pool]") {
  const Tokens prompt = consecutive(0, 9);
  SECTION("not in the step that fills them, but from the next append on") {
    BlockPool pool = make_pool(8);
    start(pool, 1, prompt, 9);
    CHECK(pool.reusable_tokens(prompt) == 0);
    pool.append(1);
    CHECK(pool.reusable_tokens(prompt) == 8);
  }
  SECTION("a chunked prompt, chunk by chunk") {
    BlockPool pool = make_pool(8);
    pool.submit(1, prompt, 1);
    pool.append(1, std::span(prompt).first(6));
    pool.append(1, std::span(prompt).subspan(6));
    CHECK(pool.reusable_tokens(prompt) == 4);
  }
  SECTION("when the sequence is freed") {
    BlockPool pool = make_pool(8);
    run(pool, prompt);
    CHECK(pool.reusable_tokens(prompt) == 8);
  }
  SECTION("never, of a last append that was aborted") {
    BlockPool pool = make_pool(8);
    start(pool, 1, prompt, 9);
    pool.append(1, consecutive(9, 4));  // fills the third block, whose last token is 11
    pool.abort(1);
    CHECK(pool.usage().cached_blocks == 2);
    CHECK(pool.reusable_tokens(consecutive(0, 13)) == 8);
    require_sound(pool);
  }
}

TEST_CASE("prefix reuse: generated tokens are reused like prompts", "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(8);
  const Tokens conversation = consecutive(0, 17);
  start(pool, 1, consecutive(0, 6), 20);
  for (TokenId t = 6; t < 15; ++t) pool.append(1, consecutive(t, 1));
  pool.free(1);
  CHECK(start(pool, 2, conversation, 1) == 12);
  require_sound(pool);
}

TEST_CASE("prefix reuse: tokens of unknown content and all behind them are never reused", "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(16);
  start(pool, 1, consecutive(0, 6), 20);
  pool.append(1, 1);
  pool.append(1, consecutive(7, 9));
  pool.free(1);
  CHECK(pool.usage().cached_blocks == 1);
  CHECK(pool.reusable_tokens(consecutive(0, 17)) == 4);
  pool.submit(2, 16, 1);
  pool.append(2, consecutive(100, 16));  // known after all
  pool.free(2);
  CHECK(pool.reusable_tokens(consecutive(100, 17)) == 16);
  require_sound(pool);
}

TEST_CASE("prefix reuse: with every hash equal, blocks of other tokens or behind another prefix are not handed out",
          "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(16, &always_collides);
  const Tokens a = consecutive(0, 4);
  const Tokens b = consecutive(10, 4);
  const Tokens x = consecutive(20, 4);
  const Tokens last{7};
  run(pool, joined(a, x));
  CHECK(pool.reusable_tokens(joined(joined(b, x), last)) == 0);
  run(pool, b);
  CHECK(pool.reusable_tokens(joined(joined(b, x), last)) == 4);  // x is known only behind a
  CHECK(pool.reusable_tokens(joined(joined(x, a), last)) == 0);
  CHECK(pool.reusable_tokens(joined(joined(a, a), last)) == 4);
  CHECK(pool.reusable_tokens(joined(joined(a, x), last)) == 8);
  require_sound(pool);
}

TEST_CASE("prefix reuse: the hash depends on every token, their order and the prefix", "[kv_cache][block_pool]") {
  const Tokens tokens = consecutive(1, 16);
  const std::uint64_t hash = hash_block_tokens(0, tokens);
  CHECK(hash == hash_block_tokens(0, tokens));
  CHECK(hash != hash_block_tokens(1, tokens));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Tokens other = tokens;
    ++other[i];
    CHECK(hash != hash_block_tokens(0, other));
    other = tokens;
    std::swap(other[i], other[(i + 1) % other.size()]);
    CHECK(hash != hash_block_tokens(0, other));
  }
}

TEST_CASE("prefix reuse: the least recently used blocks are evicted first, of a prefix the last ones",
          "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(6);
  const Tokens a = consecutive(0, 9);
  const Tokens b = consecutive(100, 9);
  run(pool, a);  // 2 blocks each stay cached
  run(pool, b);
  run(pool, a);  // used again: b is the older one now
  CHECK(pool.usage().cached_blocks == 4);
  CHECK(pool.usage().free_blocks == 2);
  CHECK(pool.usage().evicted_blocks == 0);  // free blocks are taken before cached ones

  start(pool, 1, consecutive(200, 12), 1);
  CHECK(pool.usage().evicted_blocks == 1);
  CHECK(pool.reusable_tokens(b) == 4);
  CHECK(pool.reusable_tokens(a) == 8);
  start(pool, 2, consecutive(300, 4), 1);
  CHECK(pool.reusable_tokens(b) == 0);
  CHECK(pool.reusable_tokens(a) == 8);
  start(pool, 3, consecutive(400, 4), 1);
  CHECK(pool.reusable_tokens(a) == 4);
  start(pool, 4, consecutive(500, 4), 1);
  CHECK(pool.reusable_tokens(a) == 0);
  CHECK(pool.available_blocks() == 0);
  CHECK(pool.usage().evicted_blocks == 4);
  require_sound(pool);
}

TEST_CASE("prefix reuse: a block in use is never evicted", "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(4);
  run(pool, consecutive(0, 8));
  start(pool, 1, consecutive(0, 9), 1);
  const std::vector held(pool.table(1).begin(), pool.table(1).end());
  pool.submit(2, consecutive(100, 8), 1);
  CHECK(fault_of([&] { pool.append(2, consecutive(100, 8)); }) == BlockPoolFault::full);
  pool.append(2, consecutive(100, 4));
  CHECK(std::ranges::equal(pool.table(1), held));
  CHECK(pool.usage().evicted_blocks == 0);
  require_sound(pool);
}

TEST_CASE("prefix reuse: a prefix computed twice at once is found until both are evicted", "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(6);
  const Tokens prompt = consecutive(0, 9);
  start(pool, 1, prompt, 1);
  start(pool, 2, prompt, 1);
  CHECK(pool.usage().saved_blocks == 0);
  pool.free(1);
  pool.free(2);
  CHECK(pool.usage().cached_blocks == 4);
  start(pool, 3, consecutive(100, 16), 1);  // evicts the copy of sequence 1
  CHECK(pool.usage().evicted_blocks == 2);
  CHECK(pool.reusable_tokens(prompt) == 8);
  start(pool, 4, consecutive(200, 8), 1);
  CHECK(pool.reusable_tokens(prompt) == 0);
  require_sound(pool);
}

TEST_CASE("prefix reuse: what a fork fills is offered behind what it shares", "[kv_cache][block_pool]") {
  BlockPool pool = make_pool(8);
  const Tokens prompt = consecutive(0, 6);
  start(pool, 1, prompt, 10);
  pool.step_done();
  pool.fork(1, 2);
  pool.append(1, consecutive(50, 3));
  pool.append(2, consecutive(60, 3));
  REQUIRE(pool.pending_copies().size() == 1);
  pool.copies_made();
  pool.free(1);
  pool.free(2);
  CHECK(pool.usage().cached_blocks == 3);  // the shared one, and a second one of each
  CHECK(pool.reusable_tokens(joined(prompt, consecutive(50, 3))) == 8);
  CHECK(pool.reusable_tokens(joined(prompt, consecutive(60, 3))) == 8);
  CHECK(pool.reusable_tokens(joined(prompt, consecutive(70, 3))) == 4);
  require_sound(pool);
}

TEST_CASE("prefix reuse: a pool without it keeps nothing", "[kv_cache][block_pool]") {
  BlockPool pool({.num_blocks = 8, .block_size = 4});
  run(pool, consecutive(0, 16));
  CHECK(pool.usage().free_blocks == 8);
  CHECK(start(pool, 1, consecutive(0, 16), 1) == 0);
  CHECK(pool.reusable_tokens(consecutive(0, 16)) == 0);
  require_sound(pool);
}
