// The scale of a group of elements, for host and device, without a division.
#pragma once

#include <cmath>
#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer::append {

inline constexpr std::uint32_t kLeastNormalScale = 0x0400U;  // 2^-14 in f16
inline constexpr std::uint32_t kLargestScale = 0x7bffU;      // 65504

// greatest / largest_code before it is rounded to f16: the product with the reciprocal and one Newton step, which for
// quotients of f16's range is the division itself without its handling of extremes; beyond that range its f16 is 0 or
// infinite all the same. Without the step, quotients half-way between two subnormal f16 would round to the wrong one.
// A test compares it with the division for all magnitudes of f16 and bf16.
INFEROMETER_HOST_DEVICE inline float unrounded_scale(float greatest, float largest_code) {
  const float reciprocal = 1.0F / largest_code;  // constant once inlined
  const float quotient = greatest * reciprocal;
  return fmaf(fmaf(-quotient, largest_code, greatest), reciprocal, quotient);
}

// Whether no code of the group can pass the largest one: where the scale is off by the rounding to 11 bits alone. A
// subnormal scale may be off by half of itself, and the largest one by any factor. A zero scale is not plain either.
INFEROMETER_HOST_DEVICE constexpr bool is_plain_scale(std::uint32_t bits) {
  return bits >= kLeastNormalScale && bits < kLargestScale;
}

}  // namespace inferometer::append
