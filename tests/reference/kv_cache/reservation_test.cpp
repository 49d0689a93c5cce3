#include "reference/kv_cache/reservation.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>

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

void require_sound(const SlotPool& pool) {
  const std::vector<std::string> broken = pool.check_invariants();
  CAPTURE(broken);
  REQUIRE(broken.empty());
}

using enum ReservationPolicy;

}  // namespace

TEST_CASE("reservation: OPT-13B in 12 GiB reserves 2048 slots for seven sequences and leaves 8.85 %", "[kv_cache]") {
  // Kwon et al. 2023, section 3: 2 (key and value) x 5120 (hidden size) x 40 (layers) x 2 bytes a token.
  constexpr std::int64_t kTokenBytes = std::int64_t{2} * 5120 * 40 * 2;
  static_assert(kTokenBytes == 800 << 10);
  SlotPool pool((std::int64_t{12} << 30) / kTokenBytes);
  REQUIRE(pool.total_slots() == 15'728);
  int admitted = 0;
  while (pool.reserve(reserved_slots(maximum, 100, 50, 2048))) ++admitted;
  CHECK(admitted == 7);
  CHECK(pool.free_slots() == 1'392);
  CHECK(static_cast<double>(pool.free_slots()) / 15'728 == Approx(0.0885).margin(0.00005));
  // The same memory for the same sequences, if one knew that each stores 149 tokens.
  SlotPool known(15'728);
  admitted = 0;
  while (known.reserve(reserved_slots(oracle, 100, 50, 2048))) ++admitted;
  CHECK(admitted == 15'728 / 149);
}

TEST_CASE("reservation: each policy reserves what it knows of a request", "[kv_cache]") {
  struct Row {
    std::int64_t prompt, outputs, at_maximum, at_power_of_two, at_oracle;
  };
  for (const Row row : {Row{1, 1, 2048, 1, 1},
                        {100, 25, 2048, 131, 124},  // the paper's example: 25 outputs reserve for 32
                        {100, 32, 2048, 131, 131},
                        {100, 33, 2048, 163, 132},
                        {2000, 40, 2048, 2048, 2039},  // 64 would pass the maximum
                        {2048, 1, 2048, 2048, 2048},
                        {5, 2044, 2048, 2048, 2048},
                        {9, 0, 0, 0, 0}}) {
    CAPTURE(row.prompt, row.outputs);
    CHECK(reserved_slots(maximum, row.prompt, row.outputs, 2048) == row.at_maximum);
    CHECK(reserved_slots(power_of_two, row.prompt, row.outputs, 2048) == row.at_power_of_two);
    CHECK(reserved_slots(oracle, row.prompt, row.outputs, 2048) == row.at_oracle);
  }
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(reserved_slots(power_of_two, 1, kMost, kMost) == kMost);
}

TEST_CASE("reservation: requests that cannot be are refused", "[kv_cache]") {
  for (const ReservationPolicy policy : {maximum, power_of_two, oracle}) {
    CHECK(fault_of([&] { reserved_slots(policy, 0, 5, 2048); }) == KvCacheFault::wrong_size);
    CHECK(fault_of([&] { reserved_slots(policy, -1, 5, 2048); }) == KvCacheFault::wrong_size);
    CHECK(fault_of([&] { reserved_slots(policy, 5, -1, 2048); }) == KvCacheFault::wrong_size);
    CHECK(fault_of([&] { reserved_slots(policy, 2048, 2, 2048); }) == KvCacheFault::never_fits);
    CHECK(fault_of([&] { reserved_slots(policy, 2049, 1, 2048); }) == KvCacheFault::never_fits);
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    CHECK(fault_of([&] { reserved_slots(policy, kMost, kMost, 2048); }) == KvCacheFault::never_fits);
  }
}

TEST_CASE("slot pool: the lowest gap that is large enough is taken, and neighbours are joined", "[kv_cache]") {
  SlotPool pool(100);
  CHECK(pool.reserve(30) == 0);
  CHECK(pool.reserve(10) == 30);
  CHECK(pool.reserve(40) == 40);
  CHECK(pool.reserve(20) == 80);
  CHECK(pool.reserve(1) == std::nullopt);
  CHECK(pool.largest_gap() == 0);

  pool.release(0);
  pool.release(40);
  CHECK(pool.free_slots() == 70);
  CHECK(pool.largest_gap() == 40);
  CHECK(pool.reserve(41) == std::nullopt);  // 70 are free: external fragmentation
  CHECK(pool.reserve(31) == 40);            // not the first gap
  CHECK(pool.reserve(30) == 0);             // all of one
  CHECK(pool.largest_gap() == 9);
  require_sound(pool);

  pool.release(0);
  pool.release(40);  // joined with the gap behind
  CHECK(pool.largest_gap() == 40);
  pool.release(30);  // with both
  CHECK(pool.largest_gap() == 80);
  pool.release(80);
  CHECK(pool == SlotPool(100));
}

TEST_CASE("slot pool: misuse is a typed error and changes nothing", "[kv_cache]") {
  CHECK_THROWS_AS(SlotPool(0), ProblemError);
  CHECK_THROWS_AS(SlotPool(-1), ProblemError);
  SlotPool pool(100);
  pool.reserve(10);
  pool.reserve(10);
  pool.release(0);
  const SlotPool before = pool;
  CHECK(fault_of([&] { pool.release(0); }) == KvCacheFault::not_owned);
  CHECK(fault_of([&] { pool.release(15); }) == KvCacheFault::not_owned);
  CHECK(fault_of([&] { pool.release(-1); }) == KvCacheFault::not_owned);
  CHECK(fault_of([&] { pool.reserve(0); }) == KvCacheFault::wrong_size);
  CHECK(fault_of([&] { pool.reserve(-5); }) == KvCacheFault::wrong_size);
  CHECK(fault_of([&] { pool.reserve(101); }) == KvCacheFault::never_fits);
  CHECK(pool.reserve(100) == std::nullopt);
  CHECK(pool == before);
}

TEST_CASE("slot pool: 10000 random reservations and releases agree with a memory of flags", "[kv_cache]") {
  constexpr std::uint64_t kSeed = 7;
  constexpr std::int64_t kSlots = 200;
  CAPTURE(kSeed);
  std::mt19937_64 random(kSeed);
  SlotPool pool(kSlots);
  std::string memory(kSlots, '.');  // one character a slot
  std::map<std::int64_t, std::int64_t> live;
  int fragmented = 0;
  for (int step = 0; step < 10'000; ++step) {
    CAPTURE(step);
    if (random() % 2 == 0 && !live.empty()) {
      const auto chosen = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      pool.release(chosen->first);
      memory.replace(static_cast<std::size_t>(chosen->first), static_cast<std::size_t>(chosen->second),
                     static_cast<std::size_t>(chosen->second), '.');
      live.erase(chosen);
    } else {
      const std::int64_t slots = 1 + static_cast<std::int64_t>(random() % 40);
      const std::size_t expected = memory.find(std::string(static_cast<std::size_t>(slots), '.'));
      fragmented += expected == std::string::npos && pool.free_slots() >= slots ? 1 : 0;
      const std::optional<std::int64_t> first = pool.reserve(slots);
      REQUIRE(first.has_value() == (expected != std::string::npos));
      if (first) {
        REQUIRE(*first == static_cast<std::int64_t>(expected));
        memory.replace(expected, static_cast<std::size_t>(slots), static_cast<std::size_t>(slots), '#');
        live.emplace(*first, slots);
      }
    }
    REQUIRE(pool.free_slots() == std::ranges::count(memory, '.'));
    REQUIRE(pool.ranges() == std::ssize(live));
    std::int64_t largest = 0;
    while (memory.find(std::string(static_cast<std::size_t>(largest + 1), '.')) != std::string::npos) ++largest;
    REQUIRE(pool.largest_gap() == largest);
    require_sound(pool);
  }
  CHECK(fragmented > 100);  // so that the test is about it
}
