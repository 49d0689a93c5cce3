#include "kernels/kv_append/fast_divisor.hpp"

#include <algorithm>
#include <random>

#include "tests/support/catch.hpp"

using inferometer::append::FastDivisor;

namespace {

constexpr std::uint32_t kMost = 0x7fffffffU;

// Checked by a loop of plain conditions: one assertion a divisor, or Catch's own work would be most of the time.
bool divides(std::uint32_t divisor, std::uint32_t dividend) {
  const FastDivisor fast(divisor);
  const std::uint32_t quotient = fast.quotient(dividend);
  return quotient == dividend / divisor && fast.remainder(dividend, quotient) == dividend % divisor;
}

}  // namespace

TEST_CASE("fast divisor: exact around every multiple that could go wrong, for all small divisors", "[kv_append]") {
  for (std::uint32_t divisor = 1; divisor <= 4096; ++divisor) {
    CAPTURE(divisor);
    REQUIRE(FastDivisor(divisor).value() == divisor);
    bool exact = divides(divisor, 0) && divides(divisor, kMost) && divides(divisor, kMost - 1);
    for (std::uint32_t quotient : {1U, 2U, 3U, 255U, 65536U, kMost / divisor, kMost / divisor - 1}) {
      const std::uint64_t multiple = std::uint64_t{quotient} * divisor;
      if (multiple == 0 || multiple > kMost) continue;
      const auto dividend = static_cast<std::uint32_t>(multiple);
      exact = exact && divides(divisor, dividend) && divides(divisor, dividend - 1) &&
              (dividend == kMost || divides(divisor, dividend + 1));
    }
    CHECK(exact);
  }
}

TEST_CASE("fast divisor: exact for random and extreme divisors up to 2^31 - 1", "[kv_append]") {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    const auto draw = [&] { return static_cast<std::uint32_t>(random()) & kMost; };
    const std::uint32_t divisor = i < 64 ? kMost - static_cast<std::uint32_t>(i) : std::max(1U, draw() >> i % 31);
    CAPTURE(divisor);
    bool exact = divides(divisor, divisor) && divides(divisor, divisor - 1) && divides(divisor, kMost);
    for (int k = 0; k < 64; ++k) exact = exact && divides(divisor, draw());
    const std::uint32_t last = kMost / divisor * divisor;
    CHECK((exact && divides(divisor, last) && divides(divisor, last - 1)));
  }
}
