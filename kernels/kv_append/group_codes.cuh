// The arithmetic of quantisation, as layout.hpp states it: the scales of a group and the codes of a vector. Every
// operation is rounded once, in f32; the intrinsics keep the compiler from fusing any two.
//
// A vector is 8 elements of f16 or bf16, T, in four registers of a pair each. Where a register holds something of K and
// of V, K is in the lower half.
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/kv_append/append_args.hpp"
#include "kernels/kv_append/e4m3.hpp"
#include "kernels/kv_append/group_scale.hpp"
#include "kernels/ptx/cvt_e4m3.cuh"
#include "kernels/ptx/rcp.cuh"

namespace inferometer::append {

inline constexpr unsigned kWholeWarp = 0xffffffffU;

// Bits of the greatest |k| and |v| of a lane's vectors. Magnitudes are compared as integers: with the sign bit cleared,
// both types rise with their bits.
__device__ __forceinline__ std::uint32_t greatest_magnitudes(const uint4 (&k)[kLaneVectors],
                                                             const uint4 (&v)[kLaneVectors]) {
  const auto greatest_pair = [](const uint4(&x)[kLaneVectors]) {
    constexpr std::uint32_t kNoSigns = 0x7fff7fffU;
    std::uint32_t greatest = 0;
#pragma unroll
    for (const uint4& vector : x)
      greatest = __vmaxu2(
          __vmaxu2(__vmaxu2(greatest, vector.x & kNoSigns), __vmaxu2(vector.y & kNoSigns, vector.z & kNoSigns)),
          vector.w & kNoSigns);
    return greatest;
  };
  const std::uint32_t k_pair = greatest_pair(k);
  const std::uint32_t v_pair = greatest_pair(v);
  return __vmaxu2(__byte_perm(k_pair, v_pair, 0x5410), __byte_perm(k_pair, v_pair, 0x7632));
}

// Over the 2^group_lanes_log2 neighbouring lanes that hold a group; every lane of the warp must call it. At a distance
// of more than the group each lane meets itself: no branch.
__device__ __forceinline__ std::uint32_t greatest_of_group(std::uint32_t magnitudes, int group_lanes_log2) {
  const int within_group = (1 << group_lanes_log2) - 1;
#pragma unroll
  for (int distance = kMostRowLanes / 2; distance > 0; distance /= 2)
    magnitudes = __vmaxu2(magnitudes, __shfl_xor_sync(kWholeWarp, magnitudes, distance & within_group));
  return magnitudes;
}

// 1 / scale, rounded to nearest, for the scales of f16: an approximation and one Newton step, the division's own
// method without its handling of extremes. Infinite or NaN for 0.
__device__ __forceinline__ float inverse_of(float scale) {
  const float approximate = rcp_approx(scale);
  return __fmaf_rn(approximate, __fmaf_rn(-scale, approximate, 1.0F), approximate);
}

// Of K and V.
struct GroupScales {
  std::uint32_t bits;  // f16 each
  float k_inverse;     // 1 / scale; no number for a scale of 0
  float v_inverse;

  // `magnitudes`: bits of the greatest |k| and |v| of the group, as T.
  template <class T>
  static __device__ __forceinline__ GroupScales of(std::uint32_t magnitudes, float largest_code) {
    const float2 greatest = unpack_pair<T>(magnitudes);
    const std::uint32_t rounded = pack_pair<__half>(unrounded_scale(greatest.x, largest_code),  // perhaps infinite
                                                    unrounded_scale(greatest.y, largest_code));
    const std::uint32_t bits = __vminu2(rounded, kLargestScale | kLargestScale << 16);
    const float2 scales = unpack_pair<__half>(bits);
    return {bits, inverse_of(scales.x), inverse_of(scales.y)};
  }

  __device__ __forceinline__ std::uint32_t k_bits() const { return bits & 0xffffU; }
  __device__ __forceinline__ std::uint32_t v_bits() const { return bits >> 16; }
  __device__ __forceinline__ bool both_plain() const { return is_plain_scale(k_bits()) && is_plain_scale(v_bits()); }
};

// A vector times 1 / scale.
struct Scaled {
  float x[kVectorElements];
};

template <class T>
__device__ __forceinline__ Scaled scaled(const uint4& vector, float inverse) {
  const std::uint32_t pairs[] = {vector.x, vector.y, vector.z, vector.w};
  Scaled result;
#pragma unroll
  for (int i = 0; i < kVectorElements / 2; ++i) {
    const float2 pair = unpack_pair<T>(pairs[i]);
    result.x[2 * i] = __fmul_rn(pair.x, inverse);
    result.x[2 * i + 1] = __fmul_rn(pair.y, inverse);
  }
  return result;
}

// An integer as the low bits of a float's, in two's complement: at 1.5 * 2^23 the last place of f32 is 1, so the
// addition rounds to a whole number, ties to even. It runs at four times the rate of a conversion to integer.
__device__ __forceinline__ std::uint32_t rounded_bits(float value) {
  return __float_as_uint(__fadd_rn(value, 0x1.8p23F));
}

// The lowest bytes of four registers, the first one's lowest.
__device__ __forceinline__ std::uint32_t pack_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                                    std::uint32_t d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// How a scaled vector, within +-kLargest but for rounding, becomes codes.
struct Int8Codes {
  static constexpr float kLargest = 127;
  using Packed = uint2;

  static __device__ __forceinline__ Packed pack(const Scaled& scaled) {
    const auto four = [&](int i) {
      return pack_bytes(rounded_bits(scaled.x[i]), rounded_bits(scaled.x[i + 1]), rounded_bits(scaled.x[i + 2]),
                        rounded_bits(scaled.x[i + 3]));
    };
    return {four(0), four(4)};
  }
};

struct Int4Codes {
  static constexpr float kLargest = 7;
  using Packed = std::uint32_t;

  // Even elements go to the low nibbles of four bytes, odd ones to the high nibbles.
  static __device__ __forceinline__ Packed pack(const Scaled& scaled) {
    const auto four = [&](int i) {
      return pack_bytes(rounded_bits(scaled.x[i]), rounded_bits(scaled.x[i + 2]), rounded_bits(scaled.x[i + 4]),
                        rounded_bits(scaled.x[i + 6]));
    };
    return (four(0) & 0x0f0f0f0fU) | (four(1) << 4 & 0xf0f0f0f0U);
  }
};

struct E4m3Codes {
  static constexpr float kLargest = 448;
  using Packed = uint2;

  static __device__ __forceinline__ Packed pack(const Scaled& scaled) {
    const auto four = [&](int i) {
      return convert(scaled.x[i], scaled.x[i + 1]) | convert(scaled.x[i + 2], scaled.x[i + 3]) << 16;
    };
    return {four(0), four(4)};
  }

 private:
  static __device__ __forceinline__ std::uint32_t convert(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
    return e4m3_bits(low) | e4m3_bits(high) << 8;
#else
    return cvt_e4m3x2(low, high);
#endif
  }
};

// The codes of a vector whose scale (f16) may be anything.
template <class T, class Codes>
__device__ __forceinline__ typename Codes::Packed careful_codes(const uint4& vector, std::uint32_t scale,
                                                                float inverse) {
  if (scale == 0) return {};
  Scaled values = scaled<T>(vector, inverse);
#pragma unroll
  for (float& x : values.x) x = fminf(fmaxf(x, -Codes::kLargest), Codes::kLargest);
  return Codes::pack(values);
}

// Codes of two vectors side by side.
__device__ __forceinline__ uint2 joined(std::uint32_t first, std::uint32_t second) { return {first, second}; }
__device__ __forceinline__ uint4 joined(const uint2& first, const uint2& second) {
  return {first.x, first.y, second.x, second.y};
}

}  // namespace inferometer::append
