// Rounding to nearest: the plainest quantiser of weights, and the grid on which every other one places its integers.
//
// A group of weights shares a grid: weight = (q - zero) * scale with an integer q of `bits` bits. The grid always
// contains 0, exactly, and reaches as far as the group does:
//   symmetric   zero = 0, q in [-2^(bits-1), 2^(bits-1) - 1],
//               scale = max(greatest / (2^(bits-1) - 1), -least / 2^(bits-1)): the finest that clips nothing
//   asymmetric  q in [0, 2^bits - 1], scale = (greatest - least) / (2^bits - 1), zero = round(-least / scale)
// with least = min(0, weights) and greatest = max(0, weights). The scale is rounded to its type, at most its largest
// number, *before* anything is divided by it, so that codes, zero points and stored scale belong together; where it
// rounds to 0 all codes are the zero point, which is 0. All in f32, rounding to nearest, ties to even.
#pragma once

#include <cstdint>
#include <span>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct GridFormat {
  std::int64_t bits = 4;  // 2 to 8
  bool symmetric = true;
  Dtype scale_dtype = Dtype::f16;  // f16 or bf16

  std::int32_t least_code() const { return symmetric ? -(1 << (bits - 1)) : 0; }
  std::int32_t largest_code() const { return symmetric ? (1 << (bits - 1)) - 1 : (1 << bits) - 1; }
};

struct Grid {
  std::uint16_t scale_bits = 0;  // as stored
  float scale = 0;               // the number that these are
  std::int32_t zero = 0;
};

// The grid of a group; all weights finite.
Grid rtn_grid(const GridFormat& format, std::span<const float> group);

// The integer of the grid point nearest to a weight.
std::int32_t nearest_code(const GridFormat& format, const Grid& grid, float weight);

// The weight that an integer stands for: exact but for the rounding of one f32 product.
float weight_of(const Grid& grid, std::int32_t code);

// What the nearest codes of a group are worth, in one pass: weight_of(grid, nearest_code(...)) of each weight. `worth`
// has a place for each.
void nearest_worth(const GridFormat& format, const Grid& grid, std::span<const float> group, std::span<float> worth);

// A row in groups of `group_size` neighbours, the last one perhaps shorter. `codes`: one a weight; `grids`: one a
// group. Throws std::invalid_argument when the sizes do not fit each other.
void quantize_rtn(const GridFormat& format, std::span<const float> row, std::int64_t group_size,
                  std::span<std::int32_t> codes, std::span<Grid> grids);

}  // namespace inferometer
