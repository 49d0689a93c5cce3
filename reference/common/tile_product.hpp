// Products and transposes of float tiles that lie in cache: the inner loops of the CPU variants.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/common/vector.hpp"

namespace inferometer {

// Element (i, k) at data[i * row_stride + k * column_stride]: a matrix or its transpose.
struct TileView {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

// A block of C is held in registers: kTileRows x kTileVectors sums, beside one row of B and one element of A.
#ifdef __AVX512F__
inline constexpr int kTileRows = 8;  // 28 of 32 registers
#else
inline constexpr int kTileRows = 4;  // 16 of 16 registers
#endif
inline constexpr int kTileVectors = 3;
inline constexpr int kTileColumns = kTileVectors * kLanes;

// One block: C [kTileRows, kVectors * kLanes] = or += A [kTileRows, depth] B [depth, kVectors * kLanes].
template <int kVectors>
void multiply_block(TileView a, const float* b, std::int64_t b_stride, float* c, std::int64_t c_stride,
                    std::int64_t depth, bool accumulate) {
  Vector sums[kTileRows][kVectors] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector row[kVectors];
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v) row[v] = load_vector(b + k * b_stride + v * kLanes);
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      const float element = a.data[i * a.row_stride + k * a.column_stride];
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) sums[i][v] += element * row[v];
    }
  }
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v) {
      float* const place = c + i * c_stride + v * kLanes;
      store_vector(place, accumulate ? load_vector(place) + sums[i][v] : sums[i][v]);
    }
  }
}

// C [rows, columns] = or += A [rows, depth] B [depth, columns]; rows of B and C are consecutive elements, b_stride and
// c_stride apart. `rows` is a multiple of kTileRows, `columns` of kLanes: pad the tiles.
// A block of B's columns stays in the first-level cache while all of A passes.
inline void multiply_tile(TileView a, const float* b, std::int64_t b_stride, float* c, std::int64_t c_stride,
                          std::int64_t rows, std::int64_t columns, std::int64_t depth, bool accumulate) {
  for (std::int64_t j = 0; j < columns; j += kTileColumns) {
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
      const TileView sliver{a.data + i * a.row_stride, a.row_stride, a.column_stride};
      float* const block = c + i * c_stride + j;
      switch (std::min<std::int64_t>(columns - j, kTileColumns) / kLanes) {
        case 1: multiply_block<1>(sliver, b + j, b_stride, block, c_stride, depth, accumulate); break;
        case 2: multiply_block<2>(sliver, b + j, b_stride, block, c_stride, depth, accumulate); break;
        default: multiply_block<kTileVectors>(sliver, b + j, b_stride, block, c_stride, depth, accumulate);
      }
    }
  }
}

// destination [columns, rows] = source [rows, columns] transposed; both in cache.
inline void transpose_tile(const float* source, std::int64_t source_stride, std::int64_t rows, std::int64_t columns,
                           float* destination, std::int64_t destination_stride) {
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) destination[j * destination_stride + i] = source[i * source_stride + j];
}

}  // namespace inferometer
