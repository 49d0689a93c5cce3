#include "reference/weight_quantization/rtn.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace inferometer {
namespace {

constexpr std::uint16_t kLargestF16 = 0x7bffU;   // 65504
constexpr std::uint16_t kLargestBf16 = 0x7f7fU;  // 3.39e38

void set_scale(const GridFormat& format, float scale, Grid& grid) {
  if (format.scale_dtype == Dtype::f16) {
    grid.scale_bits = std::min(f16_bits(scale), kLargestF16);  // rounding may end at infinity
    grid.scale = f16_value(grid.scale_bits);
  } else {
    grid.scale_bits = std::min(bf16_bits(scale), kLargestBf16);
    grid.scale = bf16_value(grid.scale_bits);
  }
}

}  // namespace

Grid rtn_grid(const GridFormat& format, std::span<const float> group) {
  float least = 0;
  float greatest = 0;
  for (const float weight : group) {
    least = std::min(least, weight);
    greatest = std::max(greatest, weight);
  }
  const auto largest_code = static_cast<float>(format.largest_code());
  Grid grid;
  if (format.symmetric) {
    set_scale(format, std::max(greatest / largest_code, least / static_cast<float>(format.least_code())), grid);
    return grid;
  }
  // Halves, for the range of two bf16 numbers may pass the largest float.
  set_scale(format, (0.5F * greatest - 0.5F * least) / largest_code * 2, grid);
  if (grid.scale != 0)
    grid.zero = static_cast<std::int32_t>(std::rint(std::clamp(-least / grid.scale, 0.0F, largest_code)));
  return grid;
}

std::int32_t nearest_code(const GridFormat& format, const Grid& grid, float weight) {
  if (grid.scale == 0) return grid.zero;
  const auto least = static_cast<float>(format.least_code() - grid.zero);
  const auto largest = static_cast<float>(format.largest_code() - grid.zero);
  return static_cast<std::int32_t>(std::rint(std::clamp(weight / grid.scale, least, largest))) + grid.zero;
}

float weight_of(const Grid& grid, std::int32_t code) { return static_cast<float>(code - grid.zero) * grid.scale; }

void nearest_worth(const GridFormat& format, const Grid& grid, std::span<const float> group, std::span<float> worth) {
  // A scale of 0 has codes that are all worth 0; any other divisor keeps the quotients finite.
  const float scale = grid.scale == 0 ? 1.0F : grid.scale;
  const auto least = static_cast<float>(format.least_code() - grid.zero);
  const auto largest = static_cast<float>(format.largest_code() - grid.zero);
  for (std::size_t i = 0; i < group.size(); ++i) {
    const float steps = group[i] / scale;
    const float above = steps < least ? least : steps;
    worth[i] = std::rint(above > largest ? largest : above) * grid.scale;
  }
}

void quantize_rtn(const GridFormat& format, std::span<const float> row, std::int64_t group_size,
                  std::span<std::int32_t> codes, std::span<Grid> grids) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(group_size, 1));
  if (group_size < 1 || codes.size() != row.size() || grids.size() != (row.size() + size - 1) / size)
    throw std::invalid_argument("quantize_rtn: a row takes a code for each weight and a grid for each group, got " +
                                std::to_string(row.size()) + " weights in groups of " + std::to_string(group_size) +
                                ", " + std::to_string(codes.size()) + " codes and " + std::to_string(grids.size()) +
                                " grids");
  for (std::size_t g = 0; g < grids.size(); ++g) {
    const std::size_t begin = g * size;
    const auto group = row.subspan(begin, std::min(size, row.size() - begin));
    grids[g] = rtn_grid(format, group);
    for (std::size_t i = 0; i < group.size(); ++i) codes[begin + i] = nearest_code(format, grids[g], group[i]);
  }
}

}  // namespace inferometer
