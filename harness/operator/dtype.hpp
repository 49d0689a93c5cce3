// Element types of tensors, and the 16-bit conversions shared by host and device.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#ifdef __CUDACC__
#define INFEROMETER_HOST_DEVICE __host__ __device__
#else
#define INFEROMETER_HOST_DEVICE
#endif

namespace inferometer {

enum class Dtype : std::uint8_t { f16, bf16, f32, i32, u8 };

constexpr std::size_t dtype_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
    case Dtype::bf16: return 2;
    case Dtype::f32:
    case Dtype::i32: return 4;
    case Dtype::u8: return 1;
  }
  return 0;
}

constexpr std::string_view dtype_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return "f16";
    case Dtype::bf16: return "bf16";
    case Dtype::f32: return "f32";
    case Dtype::i32: return "i32";
    case Dtype::u8: return "u8";
  }
  return "?";
}

constexpr std::optional<Dtype> parse_dtype(std::string_view name) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::i32, Dtype::u8})
    if (dtype_name(dtype) == name) return dtype;
  return std::nullopt;
}

// Unit roundoff u of a floating type: rounding to nearest errs by at most u * |x|.
constexpr double unit_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 0x1p-11;
    case Dtype::bf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

// Round to nearest even, written with integers so that host and device agree to the bit.
INFEROMETER_HOST_DEVICE constexpr std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

INFEROMETER_HOST_DEVICE constexpr float bf16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

INFEROMETER_HOST_DEVICE constexpr std::uint16_t f16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);   // NaN
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // rounds past 65504: infinity
  if (magnitude < 0x38800000U) {  // below 2^-14: subnormal; adding 0.5 makes the FPU round at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

INFEROMETER_HOST_DEVICE constexpr float f16_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13));
  if (magnitude < 0x400U) {  // zero and subnormals: an exact multiple of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
}

}  // namespace inferometer
