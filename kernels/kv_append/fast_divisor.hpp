// Division by a number that is known before the launch: a multiplication and a shift in place of twenty instructions.
#pragma once

#include <bit>
#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer::append {

// For divisors 1 .. 2^31 and dividends below 2^31, exactly.
//
// With s = ceil(log2 d) the multiplier m = floor(2^(31 + s) / d) + 1 exceeds 2^(31 + s) / d by e / d with 0 < e <= d,
// so n m / 2^(31 + s) exceeds n / d by less than n / 2^31 / d < 1 / d: never enough to reach the next whole number.
// (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994.)
class FastDivisor {
 public:
  FastDivisor() = default;
  explicit constexpr FastDivisor(std::uint32_t divisor)
      : divisor_(divisor),
        shift_(31 + std::bit_width(divisor - 1)),
        multiplier_(static_cast<std::uint32_t>((std::uint64_t{1} << shift_) / divisor + 1)) {}

  INFEROMETER_HOST_DEVICE constexpr std::uint32_t value() const { return divisor_; }
  INFEROMETER_HOST_DEVICE constexpr std::uint32_t quotient(std::uint32_t dividend) const {
    return static_cast<std::uint32_t>(std::uint64_t{dividend} * multiplier_ >> shift_);
  }
  INFEROMETER_HOST_DEVICE constexpr std::uint32_t remainder(std::uint32_t dividend, std::uint32_t quotient) const {
    return dividend - quotient * divisor_;
  }

 private:
  std::uint32_t divisor_ = 1;
  std::int32_t shift_ = 31;
  std::uint32_t multiplier_ = (std::uint32_t{1} << 31) + 1;
};

}  // namespace inferometer::append
