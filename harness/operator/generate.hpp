// Random inputs as a pure function of (seed, tensor, index): host, device and judge compute the same bits, so no
// input is ever copied to be checked, and a reference can ask for any element of a tensor of any size.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

// 64 well-mixed bits. The finaliser is that of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
INFEROMETER_HOST_DEVICE constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// The stream of one tensor; mixed once, so that neighbouring seeds and tensors share no run of values.
INFEROMETER_HOST_DEVICE constexpr std::uint64_t stream_key(std::uint64_t seed, std::uint64_t tensor) {
  return mix_bits(mix_bits(seed) ^ (tensor * 0xd1342543de82ef95ULL + 1));
}

// Standard deviation of the sum of four independent uniform 16-bit integers: 2 sqrt((65536^2 - 1) / 12).
inline constexpr double kSumOfFourStddev = 37837.22723;

// Close to normal: the sum of four uniforms (Irwin-Hall), within 3.47 standard deviations. `scale` is
// float(stddev / kSumOfFourStddev); one multiplication, so no compiler can contract it differently.
INFEROMETER_HOST_DEVICE constexpr float normal_at(std::uint64_t key, std::uint64_t index, float scale) {
  const std::uint64_t bits = mix_bits(key + index * 0x9e3779b97f4a7c15ULL);
  const auto sum =
      static_cast<std::int32_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48));
  return static_cast<float>(sum - 131070) * scale;
}

// `scale` of normal_at. Host: computed once a tensor.
constexpr float normal_scale(double stddev) { return static_cast<float>(stddev / kSumOfFourStddev); }

// A float rounded to kDtype (f16, bf16 or f32), as its tensor stores it: the bits of a 16-bit type, or the float.
template <Dtype kDtype>
INFEROMETER_HOST_DEVICE constexpr auto stored_element(float value) {
  static_assert(kDtype != Dtype::i32, "i32 tensors hold given integers");
  if constexpr (kDtype == Dtype::f16) {
    return f16_bits(value);
  } else if constexpr (kDtype == Dtype::bf16) {
    return bf16_bits(value);
  } else {
    return value;
  }
}

// Element `index` of a tensor with a Normal source: what fills host and device memory, and what the judge reads.
template <Dtype kDtype>
INFEROMETER_HOST_DEVICE constexpr auto normal_element(std::uint64_t key, std::uint64_t index, float scale) {
  return stored_element<kDtype>(normal_at(key, index, scale));
}

}  // namespace inferometer
