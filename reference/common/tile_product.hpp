// C += A B on tiles that lie in cache: the inner loop of the CPU variants.
#pragma once

#include <cstdint>

#include "reference/common/vector.hpp"

namespace inferometer {

// Element (i, k) at data[i * row_stride + k * column_stride]: a matrix or its transpose.
struct TileView {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

#ifdef __AVX512F__
inline constexpr int kTileRows =
    8;  // rows x vectors sums, a row of vectors of B and one element of A: 28 of 32 registers
#else
inline constexpr int kTileRows = 4;  // 16 of 16 registers
#endif
inline constexpr int kTileVectors = 3;
inline constexpr int kTileColumns = kTileVectors * kLanes;

// One block of C [kTileRows, kTileColumns], held in registers while `depth` products are added to each element.
// B [depth, kTileColumns] and C have rows of consecutive elements, `b_stride` and `c_stride` apart.
inline void multiply_block(TileView a, const float* b, std::int64_t b_stride, float* c, std::int64_t c_stride,
                           std::int64_t depth, bool accumulate) {
  Vector sums[kTileRows][kTileVectors] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector row[kTileVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kTileVectors; ++v) row[v] = load_vector(b + k * b_stride + v * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kTileRows; ++i) {
      const float element = a.data[i * a.row_stride + k * a.column_stride];
#pragma GCC unroll 8
      for (int v = 0; v < kTileVectors; ++v) sums[i][v] += element * row[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kTileVectors; ++v) {
      float* const place = c + i * c_stride + v * kLanes;
      store_vector(place, accumulate ? load_vector(place) + sums[i][v] : sums[i][v]);
    }
  }
}

// C [rows, columns] = or += A [rows, depth] B [depth, columns]; `rows` is a multiple of kTileRows and `columns` of
// kTileColumns: pad the tiles. A block of B's columns stays in the first-level cache while all of A passes.
inline void multiply_tile(TileView a, const float* b, std::int64_t b_stride, float* c, std::int64_t c_stride,
                          std::int64_t rows, std::int64_t columns, std::int64_t depth, bool accumulate) {
  for (std::int64_t j = 0; j < columns; j += kTileColumns)
    for (std::int64_t i = 0; i < rows; i += kTileRows)
      multiply_block({a.data + i * a.row_stride, a.row_stride, a.column_stride}, b + j, b_stride, c + i * c_stride + j,
                     c_stride, depth, accumulate);
}

}  // namespace inferometer
