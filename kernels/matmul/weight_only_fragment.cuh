// Packed codes (packing.hpp) to the fragment of W that mma and wgmma take.
//
// A code becomes a 16-bit float by putting its bits into the mantissa of a constant (common/codes.cuh): 1024 + u in
// f16, 128 + u in bf16. In f16 the upper eight rows of a tile have their codes four bits higher, 1024 + 16 u, so that a
// shift serves both. A bf16 mantissa is too short for eight bits: there u itself is made.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/common/codes.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/packing.hpp"
#include "kernels/ptx/ld_shared.cuh"

namespace inferometer {

template <class T>
__device__ __forceinline__ T half_of(std::uint16_t bits) {
  T half;
  std::memcpy(&half, &bits, sizeof(bits));  // the half types are not trivially copyable: no bit_cast
  return half;
}

__device__ __forceinline__ std::uint32_t twice(std::uint32_t half) { return half * 0x00010001U; }

// A packed tile's parts, constants if the format is plain (PackedShape::is_plain).
template <int kBits, bool kPlain>
class TileForm {
 public:
  static constexpr int kScalesAt = kTileRows * kSliceK * kBits / 8;
  static constexpr int kGroupBytes = kTileRows * 2;  // of scales

  __device__ explicit TileForm(const PackedShape& shape)
      : tile_bytes_(shape.tile_bytes()),
        zeros_at_(shape.zeros_at()),
        two_groups_(shape.slice_groups() == 2),
        symmetric_(shape.symmetric) {}

  __device__ __forceinline__ int tile_bytes() const { return kPlain ? kScalesAt + kGroupBytes : tile_bytes_; }
  __device__ __forceinline__ int zeros_at() const { return zeros_at_; }
  __device__ __forceinline__ bool two_groups() const { return !kPlain && two_groups_; }
  __device__ __forceinline__ bool symmetric() const { return kPlain || symmetric_; }

 private:
  int tile_bytes_;
  int zeros_at_;
  bool two_groups_;
  bool symmetric_;
};

// A lane's codes of a tile. `codes`: shared address of the lane's 16 bytes.
template <int kBits>
__device__ __forceinline__ void load_codes(std::uint32_t codes, std::uint32_t (&words)[kBits]) {
#pragma unroll
  for (int i = 0; i < kBits / 4; ++i) {
    const uint4 v = load_shared_16b(codes + i * 512);
    words[4 * i] = v.x;
    words[4 * i + 1] = v.y;
    words[4 * i + 2] = v.z;
    words[4 * i + 3] = v.w;
  }
}

// What a lane's codes look like in a fragment: offset + step u, `low` for row g of a tile, `high` for row g + 8.
template <class T, int kBits>
struct CodeForm {
  static constexpr bool kF16 = HalfTraits<T>::kDtype == Dtype::f16;
  static constexpr int kMiddle = kBits == 4 ? 8 : 128;  // the zero point of a symmetric format
  static constexpr int kStepWords = kBits / 4;          // of codes, a lane and step of k
  static constexpr float kOffset = kF16 ? 1024.0F : kBits == 4 ? 128.0F : 0.0F;
  static constexpr float kHighStep = kF16 && kBits == 4 ? 16.0F : 1.0F;

  // offset + step u, for the eight codes of a step.
  __device__ static __forceinline__ void raw(const std::uint32_t* words, std::uint32_t (&a)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kF16 && kBits == 4) {
        a[i] = and_or(words[0] >> i / 2 * 8, i % 2 == 0 ? 0x000f000fU : 0x00f000f0U, 0x64006400U);
      } else if constexpr (kF16) {
        a[i] = and_or(words[i / 2] >> i % 2 * 8, 0x00ff00ffU, 0x64006400U);
      } else if constexpr (kBits == 4) {
        a[i] = and_or(words[0] >> 4 * i, 0x000f000fU, 0x43004300U);
      } else {  // 128 + (u mod 128) - 128, and the eighth bit as 2 or 0, times 64
        const std::uint32_t codes = words[i / 2] >> i % 2 * 8;
        const auto seven = __hsub2(pair_of<T>(and_or(codes, 0x007f007fU, 0x43004300U)), pair_of<T>(0x43004300U));
        a[i] = bits_of(__hfma2(pair_of<T>((codes & 0x00800080U) << 7), pair_of<T>(0x42804280U), seven));
      }
    }
  }
};

// code - zero, exactly, for a lane's two rows.
template <class T, int kBits>
class ExactCodes {
  using Form = CodeForm<T, kBits>;
  static constexpr bool kF16 = Form::kF16;

 public:
  __device__ ExactCodes(std::uint32_t low_zero, std::uint32_t high_zero)
      : low_(form(low_zero)), high_(kF16 && kBits == 4 ? twice(0xd400U | high_zero << 4) : form(high_zero)) {}

  __device__ __forceinline__ void convert(const std::uint32_t* words, std::uint32_t (&a)[4]) const {
    Form::raw(words, a);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto zero = pair_of<T>(i % 2 == 0 ? low_ : high_);
      if (kF16 && kBits == 4 && i % 2 == 1) {  // (1024 + 16 u) / 16 - (64 + zero)
        a[i] = bits_of(__hfma2(pair_of<T>(a[i]), pair_of<T>(0x2c002c00U), zero));
      } else {
        a[i] = bits_of(__hsub2(pair_of<T>(a[i]), zero));
      }
    }
  }

 private:
  // offset + zero, in both halves.
  __device__ static std::uint32_t form(std::uint32_t zero) {
    if constexpr (kF16) return twice(0x6400U | zero);
    if constexpr (kBits == 4) return twice(0x4300U | zero);
    return pack_pair<T>(static_cast<float>(zero), static_cast<float>(zero));
  }

  std::uint32_t low_;
  std::uint32_t high_;
};

}  // namespace inferometer
