// The grid of rounding to nearest (reference/weight_quantization/rtn.hpp) in device code: the same f32 operations in
// the same order, so that equal weights get equal codes.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct DeviceGridFormat {
  std::int32_t least_code;
  std::int32_t largest_code;
  bool symmetric;
  bool f16_scales;  // else bf16
};

struct DeviceGrid {
  std::uint16_t scale_bits;
  float scale;
  std::int32_t zero;
};

__device__ inline DeviceGrid stored_grid(const DeviceGridFormat& format, std::uint16_t scale_bits, std::int32_t zero) {
  return {scale_bits, format.f16_scales ? f16_value(scale_bits) : bf16_value(scale_bits), zero};
}

// `least` <= 0 <= `greatest`: the ends of the group's range.
__device__ inline DeviceGrid grid_of_range(const DeviceGridFormat& format, float least, float greatest) {
  const auto largest_code = static_cast<float>(format.largest_code);
  // Intrinsics are not contracted to a fused operation.
  const float scale = format.symmetric ? fmaxf(greatest / largest_code, least / static_cast<float>(format.least_code))
                                       : __fsub_rn(0.5F * greatest, 0.5F * least) / largest_code * 2;
  constexpr std::uint16_t kLargestF16 = 0x7bffU;
  constexpr std::uint16_t kLargestBf16 = 0x7f7fU;
  const std::uint16_t bits =
      format.f16_scales ? min(f16_bits(scale), kLargestF16) : min(bf16_bits(scale), kLargestBf16);
  DeviceGrid grid = stored_grid(format, bits, 0);
  if (!format.symmetric && grid.scale != 0)
    grid.zero = static_cast<std::int32_t>(rintf(fminf(fmaxf(-least / grid.scale, 0.0F), largest_code)));
  return grid;
}

__device__ inline std::int32_t nearest_code(const DeviceGridFormat& format, const DeviceGrid& grid, float weight) {
  if (grid.scale == 0) return grid.zero;
  const auto least = static_cast<float>(format.least_code - grid.zero);
  const auto largest = static_cast<float>(format.largest_code - grid.zero);
  return static_cast<std::int32_t>(rintf(fminf(fmaxf(weight / grid.scale, least), largest))) + grid.zero;
}

__device__ inline float weight_of(const DeviceGrid& grid, std::int32_t code) {
  return static_cast<float>(code - grid.zero) * grid.scale;
}

}  // namespace inferometer
