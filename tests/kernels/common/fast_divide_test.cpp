#include "kernels/common/fast_divide.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

TEST_CASE("fast divide: quotients are exact around every multiple of the divisor", "[kernels]") {
  constexpr std::uint32_t kLargest = 0x7fffffffU;
  std::vector<std::uint32_t> divisors{1, 2, 3, 5, 6, 7, 10, 12, 13, 16, 17, 63, 64, 65, 100, 641, 1000, 4095, 4096};
  for (const std::uint32_t large : {65535U, 65536U, 65537U, 1U << 30, (1U << 30) + 1, kLargest, 1U << 31})
    divisors.push_back(large);
  for (const std::uint32_t divisor : divisors) {
    const FastDivide by(divisor);
    CHECK(by.divisor() == divisor);
    bool exact = true;
    const std::uint32_t multiples = kLargest / divisor;
    const std::uint32_t step = std::max(multiples / 1000, 1U);  // a thousand multiples, the last one among them
    for (std::uint64_t m = 0; m <= multiples; m += m + step > multiples && m != multiples ? multiples - m : step)
      for (const std::int64_t near : {-1, 0, 1}) {
        const auto n = static_cast<std::int64_t>(m * divisor) + near;
        if (n < 0 || n > kLargest) continue;
        exact &= by.quotient(static_cast<std::uint32_t>(n)) == static_cast<std::uint32_t>(n) / divisor;
      }
    INFO("divisor " << divisor);
    CHECK(exact);
    CHECK(by.quotient(kLargest) == kLargest / divisor);
  }
}

TEST_CASE("fast divide: by default the divisor is 1", "[kernels]") {
  CHECK(FastDivide().quotient(12345) == 12345);
  CHECK(FastDivide().divisor() == 1);
}

}  // namespace
}  // namespace inferometer
