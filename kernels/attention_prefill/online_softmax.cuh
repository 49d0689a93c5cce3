// Softmax over keys that arrive a step at a time (Milakov and Gimelshein 2018; Dao et al. 2022, algorithm 1), on score
// fragments of mma.m16n8k16.
//
// With c = log2(e) / sqrt(head_dim), P = 2^(c S - c m). Any m serves in exact arithmetic, since O and the sum carry the
// same factor 2^(-c m); it must only keep the powers within range. So m need not be the largest score: it follows only
// when a score passes it by more than kMarginLog2, and P stays below 2^8, which neither f16 nor a f32 sum minds. On
// usual inputs m settles with the first keys and O is not rescaled again; a thread compares its own scores and one vote
// of the warp replaces the exchange of row maxima.
#pragma once

#include <cfloat>
#include <cstdint>
#include <limits>

#include "kernels/attention_prefill/softmax_scale.hpp"
#include "kernels/common/half_ops.cuh"
#include "kernels/ptx/exp2.cuh"

namespace inferometer {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr unsigned kWholeWarp = 0xffffffffU;
// c S - c m is one FFMA that rounds c m beforehand. The rounding error is common to a row and cancels, until it is so
// large that the powers leave the range: scores of 1e12 err by thousands. Past this limit m is subtracted first.
inline constexpr float kFoldLimit = 0x1p16F;

// The rows of one warp: kRowTiles tiles of 16. A thread has a share of kRows = 2 kRowTiles rows: row r is
// lane / 4 + 8 r, and element i of a fragment of tile m belongs to r = 2 m + i / 2.
template <int kRowTiles>
struct OnlineSoftmax {
  static constexpr int kRows = 2 * kRowTiles;

  SoftmaxScale scale;
  float row_max[kRows];  // m; -infinity until a key is seen
  float row_sum[kRows];  // this thread's share of the sum of P

  __device__ explicit OnlineSoftmax(const SoftmaxScale& softmax_scale) : scale(softmax_scale) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      row_max[r] = -kInfinity;
      row_sum[r] = 0.0F;
    }
  }

  __device__ float scaled_max(int r) const { return __fmul_rn(row_max[r], scale.log2); }

  // Lets m follow the scores `s` of a new step, and rescales the sums and O (`acc`) with it.
  template <int kKeyTiles, int kDimTiles>
  __device__ __forceinline__ void follow(const float (&s)[kRowTiles][kKeyTiles][4],
                                         float (&acc)[kRowTiles][kDimTiles][4]) {
    float seen[kRows];
    bool passed = false;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      seen[r] = -kInfinity;
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n)
        seen[r] = fmaxf(seen[r], fmaxf(s[r / 2][n][r % 2 * 2], s[r / 2][n][r % 2 * 2 + 1]));
      passed |= seen[r] > row_max[r] + scale.margin;
    }
    if (!__any_sync(kWholeWarp, passed)) return;

#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float top = fmaxf(row_max[r], seen[r]);
      top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, 1));
      top = fmaxf(top, __shfl_xor_sync(kWholeWarp, top, 2));
      top = fminf(top, FLT_MAX);  // scores that overflowed
      const float old = row_max[r];
      const float old_scaled = scaled_max(r);
      row_max[r] = top;
      // The difference of what was subtracted from the scores then and what will be now.
      const float raised = fabsf(scaled_max(r)) <= kFoldLimit ? scaled_max(r) - old_scaled : (top - old) * scale.log2;
      const float factor = top == old ? 1.0F : exp2_approx(-raised);  // equal: both may be -infinity
      row_sum[r] *= factor;
#pragma unroll
      for (int n = 0; n < kDimTiles; ++n) {
        acc[r / 2][n][r % 2 * 2] *= factor;
        acc[r / 2][n][r % 2 * 2 + 1] *= factor;
      }
    }
  }

  // P = 2^(c S - c m) as packed pairs, halves of the A fragments of P V; adds it to the sums.
  template <class T, int kKeyTiles>
  __device__ __forceinline__ void exponentials(float (&s)[kRowTiles][kKeyTiles][4],
                                               std::uint32_t (&p)[kRowTiles][kKeyTiles][2]) {
    float offset[kRows];
    float largest = 0.0F;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      offset[r] = row_max[r] == -kInfinity ? 0.0F : scaled_max(r);
      largest = fmaxf(largest, fabsf(offset[r]));
    }
    if (__any_sync(kWholeWarp, largest > kFoldLimit)) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (fabsf(offset[r]) <= kFoldLimit) continue;
        offset[r] = 0.0F;
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n)
#pragma unroll
          for (int i = r % 2 * 2; i < r % 2 * 2 + 2; ++i) s[r / 2][n][i] = fminf(s[r / 2][n][i], FLT_MAX) - row_max[r];
      }
    }
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n)
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float p0 = exp2_approx(fmaf(s[r / 2][n][r % 2 * 2], scale.log2, -offset[r]));
        const float p1 = exp2_approx(fmaf(s[r / 2][n][r % 2 * 2 + 1], scale.log2, -offset[r]));
        row_sum[r] += p0 + p1;
        p[r / 2][n][r % 2] = pack_pair<T>(p0, p1);
      }
  }

  // The sum of P over all keys of row r.
  __device__ float total(int r) const {
    float sum = row_sum[r];
    sum += __shfl_xor_sync(kWholeWarp, sum, 1);
    sum += __shfl_xor_sync(kWholeWarp, sum, 2);
    return sum;
  }

  // Natural logarithm of the sum of exp(S / sqrt(head_dim)) over the keys of row r; `sum` is total(r).
  __device__ float log_sum_exp(int r, float sum) const {
    constexpr float kLn2 = 0.693147180559945309F;
    return sum == 0.0F ? -kInfinity : scaled_max(r) * kLn2 + logf(sum);
  }
};

}  // namespace inferometer
