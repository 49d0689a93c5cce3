// FP8 E4M3 in integer arithmetic, for chips without the instruction (before sm_89). OCP 8-bit floating point
// specification 1.0: 4 exponent bits of bias 7, 3 mantissa bits, no infinity.
#pragma once

#include <bit>
#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer::append {

// Rounds to nearest, ties to even, and keeps the sign of zero; magnitudes above 448 become 448. For numbers, not NaN.
INFEROMETER_HOST_DEVICE constexpr std::uint32_t e4m3_bits(float value) {
  constexpr std::uint32_t kLargest = 0x43e00000U;      // 448
  constexpr std::uint32_t kLeastNormal = 0x3c800000U;  // 2^-6
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80U;
  std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > kLargest) magnitude = kLargest;
  if (magnitude < kLeastNormal) {  // adding 2^14 makes the FPU round at 2^-9, the step of subnormal numbers
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14F;
    return sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0x1p14F));
  }
  // Drop 20 of 23 mantissa bits and move the exponent's bias from 127 to 7.
  const std::uint32_t rounded = magnitude + 0x7ffffU + ((magnitude >> 20) & 1U);
  return sign | ((rounded - (std::uint32_t{127 - 7} << 23)) >> 20);
}

}  // namespace inferometer::append
