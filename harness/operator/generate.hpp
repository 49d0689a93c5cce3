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
// float(stddev / kSumOfFourStddev); `offset` shifts the sum, exactly, and with it the mean. One multiplication, so no
// compiler can contract it differently.
INFEROMETER_HOST_DEVICE constexpr float normal_at(std::uint64_t key, std::uint64_t index, float scale,
                                                  std::int32_t offset = 0) {
  const std::uint64_t bits = mix_bits(key + index * 0x9e3779b97f4a7c15ULL);
  const auto sum =
      static_cast<std::int32_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48));
  return static_cast<float>(sum - 131070 + offset) * scale;
}

// `scale` of normal_at. Host: computed once a tensor.
constexpr float normal_scale(double stddev) { return static_cast<float>(stddev / kSumOfFourStddev); }

// The greatest |mean| / stddev for which every shifted sum is an integer below 2^24, which a float holds exactly.
inline constexpr double kMostMeanOverStddev = 400;

// `offset` of normal_at: the mean to the nearest step of the sum.
constexpr std::int32_t normal_offset(double mean, double stddev) {
  const double steps = mean == 0 ? 0 : mean / stddev * kSumOfFourStddev;
  return static_cast<std::int32_t>(steps < 0 ? steps - 0.5 : steps + 0.5);
}

// Bytes 8 `word` to 8 `word` + 7 of a tensor of random bytes, the first in the lowest bits. Without the NaN of E4M3,
// 0x7f and 0xff become their neighbours 0x7e and 0xfe.
INFEROMETER_HOST_DEVICE constexpr std::uint64_t random_word(std::uint64_t key, std::uint64_t word,
                                                            bool without_e4m3_nan) {
  const std::uint64_t bits = mix_bits(key + word * 0x9e3779b97f4a7c15ULL);
  if (!without_e4m3_nan) return bits;
  // Adding 1 to the low seven bits of a byte carries into its highest bit only where they are all set.
  const std::uint64_t carries = (bits & 0x7f7f7f7f7f7f7f7fULL) + 0x0101010101010101ULL;
  return bits ^ ((carries >> 7) & 0x0101010101010101ULL);
}

// A float rounded to kDtype (f16, bf16 or f32), as its tensor stores it: the bits of a 16-bit type, or the float.
// u8: a whole number from 0 to 255.
template <Dtype kDtype>
INFEROMETER_HOST_DEVICE constexpr auto stored_element(float value) {
  static_assert(kDtype != Dtype::i32, "i32 tensors hold given integers");
  if constexpr (kDtype == Dtype::f16) {
    return f16_bits(value);
  } else if constexpr (kDtype == Dtype::bf16) {
    return bf16_bits(value);
  } else if constexpr (kDtype == Dtype::u8) {
    return static_cast<std::uint8_t>(value);
  } else {
    return value;
  }
}

// Element `index` of a tensor with a Normal source: what fills host and device memory, and what the judge reads.
template <Dtype kDtype>
INFEROMETER_HOST_DEVICE constexpr auto normal_element(std::uint64_t key, std::uint64_t index, float scale,
                                                      std::int32_t offset = 0) {
  return stored_element<kDtype>(normal_at(key, index, scale, offset));
}

}  // namespace inferometer
