// Grids that clip the ends of a group on purpose: a finer step for most weights, at the price of the few largest.
#pragma once

#include <span>

#include "reference/weight_quantization/rtn.hpp"

namespace inferometer {

enum class GridChoice : std::uint8_t {
  range,               // rtn_grid: nothing is clipped
  least_squared_error  // of range and its parts, the grid with the least sum of squared weight errors
};

// The grid of `ratio` times the range of the group, 0 < ratio <= 1; ratio 1: rtn_grid.
Grid part_of_range(const GridFormat& format, std::span<const float> group, float ratio);

// least_squared_error looks at 1.00, 0.98, ..., 0.30 of the range: the greatest one where several are equally good.
Grid choose_grid(const GridFormat& format, GridChoice choice, std::span<const float> group);

}  // namespace inferometer
