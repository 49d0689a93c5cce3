#include "kernels/common/fast_divide.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

constexpr std::uint32_t kMost = 0x7fffffffU;

// One assertion a divisor: those of every dividend would take most of the time.
bool divides(std::uint32_t divisor, std::uint32_t dividend) {
  const FastDivide by(divisor);
  const std::uint32_t quotient = by.quotient(dividend);
  return quotient == dividend / divisor && by.remainder(dividend, quotient) == dividend % divisor;
}

bool divides_around(std::uint32_t divisor, std::uint64_t multiple) {
  const auto dividend = static_cast<std::uint32_t>(multiple);
  return divides(divisor, dividend) && (dividend == 0 || divides(divisor, dividend - 1)) &&
         (dividend == kMost || divides(divisor, dividend + 1));
}

TEST_CASE("fast divide: exact around multiples, first to last, of small divisors and of powers of two", "[kernels]") {
  std::vector<std::uint32_t> divisors{kMost - 1, kMost, 1U << 31};
  for (std::uint32_t divisor = 1; divisor <= 4096; ++divisor) divisors.push_back(divisor);
  for (int power = 13; power <= 30; ++power)
    for (const int off : {-1, 0, 1}) divisors.push_back((1U << power) + static_cast<std::uint32_t>(off));
  for (const std::uint32_t divisor : divisors) {
    CAPTURE(divisor);
    REQUIRE(FastDivide(divisor).divisor() == divisor);
    const std::uint32_t last = kMost / divisor;
    bool exact = divides(divisor, kMost);
    for (const std::uint32_t multiple : {0U, 1U, 2U, 3U, 255U, 65536U, last / 2, last - std::min(last, 1U), last})
      if (multiple <= last) exact = exact && divides_around(divisor, std::uint64_t{multiple} * divisor);
    CHECK(exact);
  }
}

TEST_CASE("fast divide: exact for random dividends and divisors of every size", "[kernels]") {
  std::mt19937 random(3);
  const auto draw = [&] { return static_cast<std::uint32_t>(random()) & kMost; };
  for (int i = 0; i < 2000; ++i) {
    const std::uint32_t divisor = std::max(1U, draw() >> i % 31);
    CAPTURE(divisor);
    bool exact = divides_around(divisor, kMost / divisor * std::uint64_t{divisor});
    for (int k = 0; k < 64; ++k) exact = exact && divides(divisor, draw());
    CHECK(exact);
  }
}

TEST_CASE("fast divide: by default the divisor is 1", "[kernels]") {
  CHECK(FastDivide().quotient(12345) == 12345);
  CHECK(FastDivide().quotient(kMost) == kMost);
  CHECK(FastDivide().divisor() == 1);
}

}  // namespace
}  // namespace inferometer
