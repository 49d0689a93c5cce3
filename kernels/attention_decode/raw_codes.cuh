// Integer codes as 16-bit floats that the tensor cores take before they are the codes' values: one lop3 a pair.
//
// The bits of an f16 below 1024 are a number of its smallest subnormals, exactly, and mma multiplies them exactly: so
// code + bias, masked out of the packed word, is a float without a conversion. What remains is linear and goes where it
// is cheap: the unit of 2^24 into the scales, and the bias out by one more mma with a constant, as soon as it came in
// (taken off at the end, it would cost the last bits of a long sum). bf16 has a mantissa of 7 bits and its subnormals
// lie below what f32 sums hold: nibbles stand behind a leading one there, bytes are converted.
#pragma once

#include <cstdint>

#include "kernels/common/codes.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/ptx/lop3.cuh"

namespace inferometer::decode {

// What `unpack` makes of codes, against their values: value = (raw - bias) * kUnit, and for odd pairs
// (raw / kOddFactor - bias) * kUnit. Not biased: raw floats are the values.
struct ExactCodes {
  static constexpr float kUnit = 1.0F;
  static constexpr float kOddFactor = 1.0F;
  static constexpr bool kBiased = false;
};

template <class T>
struct RawInt8 : ExactCodes {  // bf16
  __device__ static void unpack(std::uint32_t (&pair)[2], std::uint32_t word) {
    pair[0] = int8_pair<T, 0, 2>(word);
    pair[1] = int8_pair<T, 1, 3>(word);
  }
};

template <>
struct RawInt8<__half> {
  static constexpr float kUnit = 0x1p24F;
  static constexpr float kOddFactor = 1.0F;
  static constexpr bool kBiased = true;
  static constexpr std::uint32_t kMinusBias[2] = {0x80808080U, 0x80808080U};  // -128 units, for even and odd pairs
  // Bytes 0 and 2, then 1 and 3.
  __device__ static void unpack(std::uint32_t (&pair)[2], std::uint32_t word) {
    pair[0] = and_xor(word, 0x00ff00ffU, 0x00800080U);
    pair[1] = and_xor(word >> 8, 0x00ff00ffU, 0x00800080U);
  }
};

template <class T>
struct RawInt4 {  // bf16: 128 + code + 8
  static constexpr float kUnit = 1.0F;
  static constexpr float kOddFactor = 1.0F;
  static constexpr bool kBiased = true;
  static constexpr std::uint32_t kMinusBias[2] = {0xc308c308U, 0xc308c308U};
  // Nibbles 0, 1, 2, 3 of each half.
  __device__ static void unpack(std::uint32_t (&pair)[4], std::uint32_t word) {
#pragma unroll
    for (int nibble = 0; nibble < 4; ++nibble) pair[nibble] = and_xor(word >> 4 * nibble, 0x000f000fU, 0x43084308U);
  }
};

template <>
struct RawInt4<__half> {  // odd nibbles stay where they are, 16 times too large
  static constexpr float kUnit = 0x1p24F;
  static constexpr float kOddFactor = 16.0F;
  static constexpr bool kBiased = true;
  static constexpr std::uint32_t kMinusBias[2] = {0x80088008U, 0x80808080U};
  __device__ static void unpack(std::uint32_t (&pair)[4], std::uint32_t word) {
#pragma unroll
    for (int byte = 0; byte < 2; ++byte) {
      pair[2 * byte] = and_xor(word >> 8 * byte, 0x000f000fU, 0x00080008U);
      pair[2 * byte + 1] = and_xor(word >> 8 * byte, 0x00f000f0U, 0x00800080U);
    }
  }
};

}  // namespace inferometer::decode
