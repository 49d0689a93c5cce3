// The buddy allocator: sizes, alignment, halves that join again, and the largest pieces of any pool.
#include <map>
#include <random>

#include "harness/operator/fields.hpp"
#include "reference/kv_cache/error.hpp"
#include "reference/kv_memory/buddy_pool.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("buddy pool: a range is a power of two at a multiple of its size, the lowest of the smallest that do",
          "[kv_memory][buddy]") {
  BuddyPool pool(15);  // 8 + 4 + 2 + 1
  CHECK(BuddyPool::size_for(1) == 1);
  CHECK(BuddyPool::size_for(5) == 8);
  CHECK(pool.reserve(1) == 14);  // the 1, before anything is halved
  CHECK(pool.reserve(1) == 12);  // half of the 2
  CHECK(pool.reserve(3) == 8);
  CHECK(pool.reserve(3) == 0);  // half of the 8
  CHECK(pool.free_slots() == 4 + 1);
  CHECK_FALSE(pool.reserve(5));
  CHECK(pool.reserve(2) == 4);
}

TEST_CASE("buddy pool: what is released joins its buddy", "[kv_memory][buddy]") {
  BuddyPool pool(16);
  for (std::int64_t i = 0; i < 16; ++i) REQUIRE(pool.reserve(1) == i);
  CHECK(pool.free_slots() == 0);
  for (std::int64_t i = 0; i < 16; ++i) pool.release(i * 5 % 16);
  CHECK(pool.reserve(16) == 0);
  CHECK_THROWS_AS(pool.release(1), KvCacheError);
  pool.release(0);
  CHECK_THROWS_AS(pool.release(0), KvCacheError);
}

TEST_CASE("buddy pool: holds at most its largest power of two, and refuses to be empty", "[kv_memory][buddy]") {
  BuddyPool pool(15);
  CHECK(pool.can_hold(8));
  CHECK_FALSE(pool.can_hold(9));
  CHECK_FALSE(pool.can_hold(16));
  CHECK_FALSE(pool.reserve(9));
  CHECK_THROWS_AS(BuddyPool(0), ProblemError);
}

TEST_CASE("buddy pool: random ranges never overlap, and the empty pool is whole again", "[kv_memory][buddy]") {
  std::mt19937 random(11);
  BuddyPool pool(15728);
  std::map<std::int64_t, std::int64_t> held;  // first -> size
  for (int i = 0; i < 20'000; ++i) {
    if (held.empty() || random() % 2 == 0) {
      const std::int64_t slots = 1 + static_cast<std::int64_t>(random() % 600);
      const auto first = pool.reserve(slots);
      if (!first) continue;
      const std::int64_t size = BuddyPool::size_for(slots);
      REQUIRE(*first % size == 0);
      REQUIRE(*first + size <= 15728);
      const auto next = held.lower_bound(*first);
      REQUIRE((next == held.end() || *first + size <= next->first));
      REQUIRE((next == held.begin() || std::prev(next)->first + std::prev(next)->second <= *first));
      held.emplace(*first, size);
    } else {
      const auto victim = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      pool.release(victim->first);
      held.erase(victim);
    }
  }
  for (const auto& [first, size] : held) pool.release(first);
  CHECK(pool.free_slots() == 15728);
  CHECK(pool.reserve(8192) == 0);
  CHECK(pool.reserve(4096) == 8192);
  CHECK(pool.reserve(2048) == 12288);
}
