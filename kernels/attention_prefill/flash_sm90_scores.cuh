// attention_prefill / flash_sm90: scores of a block of keys as a thread holds them: element i of row i / 2 % 2, in
// column i / 4 * 8 + i % 2 from the thread's first.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/row_softmax.hpp"
#include "kernels/common/wgmma_matrix.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A bit for each of a thread's columns in a row, up to column `last`.
__device__ __forceinline__ std::uint32_t columns_up_to(int last) {
  const int count = last < 0 ? 0 : last / 8 * 2 + min(last % 8 + 1, 2);
  return count >= 32 ? ~0U : (1U << count) - 1;
}

// Scores of the thread's row `row` become -infinity outside columns first .. last. By bits, the compiler tests seven in
// one instruction; comparisons with both limits are two each.
template <bool kBits, int kScores>
__device__ __forceinline__ void mask_row(float (&sc)[kScores], int row, int first, int last) {
  static_assert(kScores <= 64);
  const std::uint32_t seen = columns_up_to(last) & ~columns_up_to(first - 1);
#pragma unroll
  for (int i = 0; i < kScores; ++i) {
    const int column = i / 4 * 8 + i % 2;
    const bool unseen = kBits ? (seen & 1U << (i / 4 * 2 + i % 2)) == 0 : column > last || column < first;
    if (i / 2 % 2 == row && unseen) sc[i] = RowSoftmax::kUnseen;
  }
}

// S = Q K^T of this warp's 16 of 64 rows, from a warpgroup's queries and a block of keys in shared memory, by mma.sync:
// no other warp takes part. 8 keys at a time, for few registers: O and P are both in use meanwhile.
template <class T, class Shape, int kScores>
__device__ __forceinline__ void scores_of_warp(std::uint32_t queries, std::uint32_t keys, float (&sc)[kScores]) {
  const std::uint32_t thread = threadIdx.x % 128;
  const std::uint32_t q_row = queries + (thread / 32 * 16 + thread % 16) * kPanelBytes;
  const std::uint32_t k_row = keys + thread % 8 * kPanelBytes;
  const std::uint32_t swizzle = thread % 8 * 16;
#pragma unroll
  for (int i = 0; i < kScores; i += 4) {
    float eight_keys[4] = {};
#pragma unroll 1
    for (int d = 0; d < Shape::kHeadDim / 32; ++d) {
      const std::uint32_t chunk = d % 2 * 64;
      std::uint32_t b[4];
      ldmatrix_x4(b, k_row + d / 2 * Shape::panel_bytes() + i / 4 * Shape::group_bytes(Shape::kQkPanels) +
                         ((chunk + thread / 8 % 4 * 16) ^ swizzle));
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        std::uint32_t a[4];
        ldmatrix_x4(a, q_row + d / 2 * 64 * kPanelBytes + ((chunk + step * 32 + thread / 16 % 2 * 16) ^ swizzle));
        mma_m16n8k16<T>(eight_keys, a, b[2 * step], b[2 * step + 1]);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) sc[i + j] = eight_keys[j];
  }
}

#endif

}  // namespace inferometer
