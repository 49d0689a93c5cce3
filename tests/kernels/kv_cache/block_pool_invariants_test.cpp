// check_invariants must find what is broken, so a pool is broken in every way that it claims to look for.
#include <functional>

#include "tests/kernels/kv_cache/pool_support.hpp"

namespace inferometer {

struct BlockPoolCorruption {
  BlockPool& pool;

  auto& block(std::int32_t block) const { return pool.states_.blocks_[static_cast<std::size_t>(block)]; }
  auto& entry(std::int32_t block) const { return pool.index_.entries_[static_cast<std::size_t>(block)]; }
  auto& free_list() const { return pool.states_.free_; }
  auto& cached_list() const { return pool.states_.cached_; }
  auto& referenced() const { return pool.states_.referenced_; }
  auto& index_size() const { return pool.index_.size_; }
  auto& next_number() const { return pool.index_.next_number_; }
  auto& token(std::int32_t block) const {
    return pool.index_.tokens_[static_cast<std::size_t>(block) * static_cast<std::size_t>(pool.block_size())];
  }
  auto& sequence(SequenceId id) const { return pool.sequences_.at(id); }
  auto& copies() const { return pool.copies_; }
  auto& table_entries() const { return pool.table_entries_; }
  auto& tokens() const { return pool.tokens_; }
  auto& filled_slots() const { return pool.filled_slots_; }
};

}  // namespace inferometer

using namespace inferometer;
using namespace inferometer::test;

namespace {

// Sequences 1 and 2 share two blocks; 2 has copied the third, that copy is pending; blocks of an ended one are cached.
BlockPool busy_pool() {
  BlockPool pool({.num_blocks = 12, .block_size = 4, .prefix_reuse = true});
  start(pool, 3, consecutive(100, 12), 4);
  pool.free(3);
  start(pool, 1, consecutive(0, 10), 4);
  pool.step_done();
  pool.fork(1, 2);
  pool.append(2, consecutive(10, 1));
  pool.append(1, consecutive(20, 1));
  return pool;
}

}  // namespace

TEST_CASE("block pool: a broken invariant is found and named", "[kv_cache][block_pool]") {
  struct Break {
    const char* sentence;  // part of one that is to be told
    std::function<void(const BlockPoolCorruption&)> action;
  };
  const std::vector<Break> breaks{
      {"counts 3 tables, 2 hold it", [](const auto& p) { ++p.block(p.sequence(1).table[0]).references; }},
      {"counts 1 tables, 2 hold it", [](const auto& p) { --p.block(p.sequence(1).table[0]).references; }},
      {"counts 1 tables, 0 hold it", [](const auto& p) { p.block(p.free_list().first).references = 1; }},
      {"is held by copies as 2, should be 1", [](const auto& p) { ++p.block(p.copies()[0].source).holds; }},
      {"is held by copies as 0, should be -1", [](const auto& p) { p.block(p.copies()[0].destination).holds = 0; }},
      {"is written by 2 pending copies", [](const auto& p) { p.copies().push_back(p.copies()[0]); }},
      {"pending copies and read by 1",
       [](const auto& p) {
         p.copies().push_back({p.copies()[0].destination, p.sequence(1).table[0]});
       }},
      {"a pending copy names block 12 of 12", [](const auto& p) { p.copies()[0].source = 12; }},
      {"sequence 1 names block -1 of 12", [](const auto& p) { p.sequence(1).table[1] = -1; }},
      {"is not in exactly one state: free 1, cached 0, owned 1",
       [](const auto& p) { p.sequence(1).table[2] = p.free_list().first; }},
      {"is not in exactly one state: free 0, cached 0, owned 0",
       [](const auto& p) {
         const std::int32_t second = p.block(p.free_list().first).next;
         p.free_list().first = second;
         p.block(second).previous = kNoBlock;
         --p.free_list().size;
       }},
      {"the free list has", [](const auto& p) { ++p.free_list().size; }},
      {"the cached list has", [](const auto& p) { p.cached_list().last = p.cached_list().first; }},
      {"the free list leads to block", [](const auto& p) { p.block(p.free_list().last).next = p.free_list().first; }},
      {"the free list leads to block 99", [](const auto& p) { p.block(p.free_list().last).next = 99; }},
      {"of the cached list does not point back",
       [](const auto& p) { p.block(p.cached_list().last).previous = p.cached_list().last; }},
      {"blocks are said to be in tables", [](const auto& p) { ++p.referenced(); }},
      {"is cached 1 and in the prefix index 0",
       [](const auto& p) { p.entry(p.cached_list().first).prefix.number = 0; }},
      {"the prefix index says", [](const auto& p) { ++p.index_size(); }},
      {"is in the bucket of another hash", [](const auto& p) { p.entry(p.cached_list().first).prefix.hash ^= 1; }},
      {"in the prefix index does not point back", [](const auto& p) { p.entry(p.cached_list().first).previous = 5; }},
      {"of the prefix index leads to block 77", [](const auto& p) { p.entry(p.cached_list().first).next = 77; }},
      {"of the prefix index leads to block",
       [](const auto& p) { p.entry(p.cached_list().first).next = p.cached_list().first; }},
      {"continues prefix", [](const auto& p) { p.next_number() = 1; }},
      {"with the same content",  // made the twin of another prefix's block
       [](const auto& p) {
         const std::int32_t a = p.sequence(1).table[0];
         const std::int32_t b = p.sequence(1).table[1];
         for (int t = 0; t < 4; ++t) (&p.token(b))[t] = (&p.token(a))[t];
         p.entry(b).parent = p.entry(a).parent;
         const std::uint64_t number = p.entry(b).prefix.number;
         p.entry(b) = {.prefix = {.number = number, .hash = p.entry(a).prefix.hash}, .parent = 0, .previous = a};
         p.entry(a).next = b;
       }},
      {"sequence 1 has 3 blocks for 13 of at most 13 tokens", [](const auto& p) { p.sequence(1).length = 13; }},
      {"sequence 1 has 3 blocks for 11 of at most 10 tokens", [](const auto& p) { p.sequence(1).capacity = 10; }},
      {"sequence 1 holds a block twice", [](const auto& p) { p.sequence(1).table[1] = p.sequence(1).table[0]; }},
      {"sequence 1 has published 2 blocks of 4 known tokens of 11", [](const auto& p) { p.sequence(1).known = 4; }},
      {"sequence 1 has published 2 blocks of 7 computed tokens",
       [](const auto& p) { p.sequence(1).before_append = 7; }},
      {"its last append behind 12 of 11 tokens", [](const auto& p) { p.sequence(1).before_append = 12; }},
      {"tokens in step 3 of 2", [](const auto& p) { p.sequence(1).append_step = 3; }},
      {"of which it has uncomputed tokens", [](const auto& p) { p.sequence(1).before_append = 7; }},
      {"the prefix index does not have it", [](const auto& p) { p.entry(p.sequence(1).table[1]).prefix.number = 0; }},
      {"slots filled for one sequence", [](const auto& p) { p.sequence(2).table[2] = p.sequence(1).table[1]; }},
      {"table entries are counted as", [](const auto& p) { ++p.table_entries(); }},
      {"tokens are counted as", [](const auto& p) { --p.tokens(); }},
      {"filled slots are counted as", [](const auto& p) { ++p.filled_slots(); }},
      {"owned blocks are counted as", [](const auto& p) { p.cached_list().size -= 1; }},
  };
  BlockPool sound = busy_pool();
  require_sound(sound);
  for (const Break& broken : breaks) {
    CAPTURE(broken.sentence);
    BlockPool pool = busy_pool();
    broken.action(BlockPoolCorruption{pool});
    std::string told;
    for (const std::string& sentence : pool.check_invariants()) told += sentence + "\n";
    CHECK_THAT(told, contains_text(broken.sentence));
  }
}
