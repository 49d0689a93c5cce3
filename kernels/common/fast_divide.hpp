// Division by a number that a whole launch shares: a multiplication and a shift in place of some forty instructions,
// which count where a kernel lasts a few microseconds.
#pragma once

#include <bit>
#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

// With s = ceil(log2 d), the multiplier m = ceil(2^(31 + s) / d) exceeds 2^(31 + s) / d by less than 1, so that
// n m / 2^(31 + s) exceeds n / d by less than n / 2^(31 + s) < 2^-s <= 1 / d: never enough to reach the next whole
// number. Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994.
class FastDivide {
 public:
  FastDivide() = default;
  // divisor in [1, 2^31]. Host only.
  explicit FastDivide(std::uint32_t divisor)
      : divisor_(divisor),
        shift_(31 + static_cast<std::int32_t>(std::bit_width(divisor - 1))),
        multiplier_(static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + divisor - 1) / divisor)) {}

  // n / divisor, for n in [0, 2^31).
  INFEROMETER_HOST_DEVICE std::uint32_t quotient(std::uint32_t n) const {
    return static_cast<std::uint32_t>(std::uint64_t{n} * multiplier_ >> shift_);
  }
  // n mod divisor, where the quotient is known.
  INFEROMETER_HOST_DEVICE std::uint32_t remainder(std::uint32_t n, std::uint32_t quotient) const {
    return n - quotient * divisor_;
  }
  INFEROMETER_HOST_DEVICE std::uint32_t divisor() const { return divisor_; }

 private:
  std::uint32_t divisor_ = 1;
  std::int32_t shift_ = 31;
  std::uint32_t multiplier_ = std::uint32_t{1} << 31;
};

}  // namespace inferometer
