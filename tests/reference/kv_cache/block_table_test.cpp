#include "reference/kv_cache/block_table.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "harness/operator/fields.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

template <class Action>
KvCacheFault fault_of(const Action& action) {
  try {
    action();
  } catch (const KvCacheError& error) {
    INFO(error.what());
    return error.fault();
  }
  FAIL("nothing was refused");
  return {};
}

}  // namespace

TEST_CASE("block table: lengths around block edges take as many blocks as they fill", "[kv_cache][paged]") {
  struct Row {
    std::int64_t length, blocks;
    int fill;
  };
  for (const Row row : {Row{0, 0, 0}, {1, 1, 1}, {15, 1, 15}, {16, 1, 16}, {17, 2, 1}, {32, 2, 16}, {33, 3, 1}}) {
    CAPTURE(row.length);
    BlockPool pool(8, 16);
    BlockTable at_once(pool);
    at_once.append(row.length);
    CHECK(std::ssize(at_once.blocks()) == row.blocks);
    CHECK(at_once.last_block_fill() == row.fill);
    CHECK(pool.free_blocks() == 8 - row.blocks);
    BlockPool other_pool(8, 16);
    BlockTable one_by_one(other_pool);
    for (std::int64_t t = 0; t < row.length; ++t) one_by_one.append();
    CHECK(std::ranges::equal(one_by_one.blocks(), at_once.blocks()));
    CHECK(one_by_one.length() == row.length);
    CHECK(one_by_one.last_block_fill() == row.fill);
  }
}

TEST_CASE("block table: every token of every sequence has its own slot", "[kv_cache][paged]") {
  BlockPool pool(12, 4);
  BlockTable a(pool);
  BlockTable b(pool);
  for (int t = 0; t < 9; ++t) {  // in turn, so that the blocks of the two interleave
    a.append();
    b.append(2);
  }
  std::set<std::pair<std::int32_t, std::int32_t>> slots;
  for (const BlockTable* table : {&a, &b}) {
    for (std::int64_t t = 0; t < table->length(); ++t) {
      const BlockTable::Slot slot = table->slot(t);
      CHECK(slot.block == table->blocks()[static_cast<std::size_t>(t / 4)]);
      CHECK(slot.offset == t % 4);
      slots.insert({slot.block, slot.offset});
    }
  }
  CHECK(std::ssize(slots) == a.length() + b.length());
}

TEST_CASE("block table: a token that is not there has no slot", "[kv_cache][paged]") {
  BlockPool pool(4, 16);
  BlockTable table(pool);
  CHECK(fault_of([&] { table.slot(0); }) == KvCacheFault::unknown_token);
  table.append(17);
  CHECK(table.slot(16).offset == 0);
  CHECK(fault_of([&] { table.slot(17); }) == KvCacheFault::unknown_token);
  CHECK(fault_of([&] { table.slot(-1); }) == KvCacheFault::unknown_token);
}

TEST_CASE("block table: a chunk that does not fit takes no block at all", "[kv_cache][paged]") {
  BlockPool pool(4, 16);
  BlockTable table(pool);
  table.append(20);
  CHECK(fault_of([&] { table.append(45); }) == KvCacheFault::full);
  CHECK(table.length() == 20);
  CHECK(table.blocks().size() == 2);
  CHECK(pool.free_blocks() == 2);
  table.append(44);  // to the last slot of the last block
  CHECK(pool.free_blocks() == 0);
  CHECK(fault_of([&] { table.append(); }) == KvCacheFault::full);
  CHECK(table.length() == 64);
  table.append(0);
  CHECK(table.length() == 64);
}

TEST_CASE("block table: impossible numbers of tokens are refused", "[kv_cache][paged]") {
  BlockPool pool(4, 16);
  BlockTable table(pool);
  table.append(1);
  CHECK(fault_of([&] { table.append(-1); }) == KvCacheFault::wrong_size);
  CHECK(fault_of([&] { table.append(std::int64_t{0x7fffffffffffffff}); }) == KvCacheFault::wrong_size);
  CHECK(fault_of([&] { table.append(std::int64_t{1} << 60); }) == KvCacheFault::full);
  CHECK(table.length() == 1);
}

TEST_CASE("block table: freeing twice is an error and changes no count", "[kv_cache][paged]") {
  BlockPool pool(4, 16);
  BlockTable table(pool);
  BlockTable other(pool);
  table.append(33);
  other.append(1);
  table.free();
  CHECK(pool.free_blocks() == 3);
  CHECK(table.length() == 0);
  CHECK(table.blocks().empty());
  CHECK(fault_of([&] { table.free(); }) == KvCacheFault::freed);
  CHECK(fault_of([&] { table.append(); }) == KvCacheFault::freed);
  CHECK(pool.free_blocks() == 3);
  CHECK(other.length() == 1);
}

TEST_CASE("block table: its end gives the blocks back, and a moved table gives them back once", "[kv_cache][paged]") {
  BlockPool pool(4, 16);
  {
    BlockTable table(pool);
    table.append(33);
    CHECK(pool.free_blocks() == 1);
    const BlockTable moved(std::move(table));
    CHECK(moved.length() == 33);
    CHECK(pool.free_blocks() == 1);
  }
  CHECK(pool.free_blocks() == 4);
}

TEST_CASE("block pool: a block freed twice, never taken or unknown is an error and changes nothing",
          "[kv_cache][paged]") {
  BlockPool pool(3, 16);
  const std::int32_t block = pool.take();
  CHECK(pool.is_taken(block));
  pool.give_back(block);
  CHECK(fault_of([&] { pool.give_back(block); }) == KvCacheFault::not_owned);
  CHECK(fault_of([&] { pool.give_back(2); }) == KvCacheFault::not_owned);
  CHECK(fault_of([&] { pool.give_back(3); }) == KvCacheFault::unknown_block);
  CHECK(fault_of([&] { pool.give_back(-1); }) == KvCacheFault::unknown_block);
  CHECK(pool.free_blocks() == 3);
  for (int i = 0; i < 3; ++i) pool.take();
  CHECK(fault_of([&] { pool.take(); }) == KvCacheFault::full);
}

TEST_CASE("block pool: a pool without blocks or blocks without slots are refused", "[kv_cache][paged]") {
  CHECK_THROWS_AS(BlockPool(0, 16), ProblemError);
  CHECK_THROWS_AS(BlockPool(-1, 16), ProblemError);
  CHECK_THROWS_AS(BlockPool(4, 0), ProblemError);
}

TEST_CASE("block table: after each of 10000 random steps every block is free or in exactly one table",
          "[kv_cache][paged]") {
  constexpr std::uint64_t kSeed = 5;
  CAPTURE(kSeed);
  std::mt19937_64 random(kSeed);
  BlockPool pool(64, 4);
  std::map<int, BlockTable> live;
  int next_id = 0;
  for (int step = 0; step < 10'000; ++step) {
    const auto choice = random() % 4;
    if (choice == 0 || live.empty()) {
      live.emplace(next_id++, BlockTable(pool));
    } else {
      auto chosen = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      if (choice == 3) {
        chosen->second.free();
        live.erase(chosen);
      } else {
        const std::int64_t before = chosen->second.length();
        const auto tokens = static_cast<std::int64_t>(random() % 20);
        try {
          chosen->second.append(tokens);
          REQUIRE(chosen->second.length() == before + tokens);
        } catch (const KvCacheError& error) {
          REQUIRE(error.fault() == KvCacheFault::full);
          REQUIRE(chosen->second.length() == before);
        }
      }
    }
    std::set<std::int32_t> owned;
    std::size_t entries = 0;
    for (const auto& [id, table] : live) {
      REQUIRE(std::ssize(table.blocks()) == (table.length() + 3) / 4);
      owned.insert(table.blocks().begin(), table.blocks().end());
      entries += table.blocks().size();
    }
    REQUIRE(owned.size() == entries);
    REQUIRE(static_cast<std::int64_t>(entries) + pool.free_blocks() == 64);
    REQUIRE(std::all_of(owned.begin(), owned.end(), [&](std::int32_t block) { return pool.is_taken(block); }));
  }
  live.clear();
  CHECK(pool.free_blocks() == 64);
}
