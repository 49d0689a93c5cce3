// Elements of Y, slowly: what few_tokens_kernel falls back on.
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_args.hpp"
#include "kernels/matmul/weight_only_fragment.cuh"

namespace inferometer {

// sum (code - zero) scale x over all of k, term by term in f32. `x`: the token's row.
template <class T, int kBits>
__device__ __forceinline__ float sum_of_terms(const PackedWeights& weights, const T* x, int row) {
  const PackedShape& shape = weights.shape;
  const int tile_row = row % kTileRows;
  float sum = 0;
  for (std::int64_t k = 0; k < shape.k; ++k) {
    const auto slice_k = static_cast<int>(k % kSliceK);
    const unsigned char* const tile = weights.tiles + shape.tile_at(row / kTileRows, k / kSliceK);
    const CodePlace place = code_place<kBits>(tile_row, slice_k);
    const std::uint32_t word = reinterpret_cast<const std::uint32_t*>(tile)[place.word];
    const auto code = static_cast<int>(word >> place.bit & ((1U << kBits) - 1));
    const int at = slice_k * shape.slice_groups() / kSliceK * kTileRows + tile_row;
    const int zero = shape.symmetric ? CodeForm<T, kBits>::kMiddle : tile[shape.zeros_at() + at];
    const float scale = to_float(reinterpret_cast<const T*>(tile + shape.scales_at())[at]);
    sum += static_cast<float>(code - zero) * scale * to_float(x[k]);
  }
  return sum;
}

// Computes anew which of the elements y[0 .. count) are not finite, of a token and of rows of W from `row` on. They are
// from this thread.
template <class T, int kBits>
__device__ __forceinline__ void mend(const PackedWeights& weights, const T* x, int row, T* y, int count) {
#pragma unroll 1
  for (int i = 0; i < count; ++i)
    if (!isfinite(to_float(y[i]))) y[i] = from_float<T>(sum_of_terms<T, kBits>(weights, x, row + i));
}

}  // namespace inferometer
