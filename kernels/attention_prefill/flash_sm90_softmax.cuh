// attention_prefill / flash_sm90: a thread's share of the softmax of 64 rows, a block of keys at a time.
#pragma once

#include <cfloat>
#include <cstdint>

#include "kernels/attention_prefill/flash_sm90_thread.cuh"
#include "kernels/attention_prefill/row_softmax.hpp"
#include "kernels/common/half_ops.cuh"
#include "kernels/ptx/exp2.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Maxima and sums run in kChains chains, half of them a row. Element i of S belongs to row i / 2 % 2 and to chain
// i % kChains.
template <class T, int kTileKv, int kChains>
class BlockSoftmax : WarpgroupThread {
 public:
  static constexpr int kScores = kTileKv / 2;  // accumulators of S a thread
  static constexpr int kSteps = kTileKv / 16;  // of k in P V

  // Before a tile's first block.
  __device__ void reset() {
    rows[0] = rows[1] = RowSoftmax{};
    sums[0] = sums[1] = 0;
    folds = true;
  }

  // S becomes P, packed in `prob`. In two halves: the maxima of the second beside the powers of the first.
  // `between(raised, factor)` is called once m is final: it waits for the product that still reads `prob`, and brings O
  // up to date, which is to be multiplied by `factor` if m was raised.
  template <class Between>
  __device__ __forceinline__ void run(float (&sc)[kScores], std::uint32_t (&prob)[kSteps][4], const SoftmaxScale& scale,
                                      Between&& between) {
    float partial[kChains] = {};
    float seen[2];
    float factor[2] = {1.0F, 1.0F};
    maxima<0, kHalf>(sc, seen);
    bool raised = follow(seen, scale, factor);
    powers<0, kHalf>(sc, scale, partial);
    maxima<kHalf, kScores>(sc, seen);
    float later[2];
    if (follow(seen, scale, later)) {
      raised = true;
#pragma unroll
      for (int r = 0; r < 2; ++r) factor[r] *= later[r];
#pragma unroll
      for (int i = 0; i < kHalf; ++i) sc[i] *= later[i / 2 % 2];
#pragma unroll
      for (int i = 0; i < kChains; ++i) partial[i] *= later[i / 2 % 2];
    }
    between(raised, factor);
    pack<0, kHalf>(sc, prob);
    powers<kHalf, kScores>(sc, scale, partial);
    pack<kHalf, kScores>(sc, prob);
    float added[2];
    join(partial, added, [](float a, float b) { return a + b; });
#pragma unroll
    for (int r = 0; r < 2; ++r) sums[r] += added[r];
  }

  // The same without maxima, for rows that have all seen a key: m stays where it is, and P may pass 2^8. Should the
  // sums leave room for a P beyond 16 bits, this warp's `again()` brings S back and m is raised after all: then
  // `raise(factor)` is called, for O. `between()` waits for the products that still read `prob` and write O.
  template <class Again, class Between, class Raise>
  __device__ __forceinline__ void run_trusting(float (&sc)[kScores], std::uint32_t (&prob)[kSteps][4],
                                               const SoftmaxScale& scale, Again&& again, Between&& between,
                                               Raise&& raise) {
    float partial[kChains] = {};
    float added[2];
    // A row whose scores were all -infinity or NaN so far gets P = infinity or NaN, and with it the other way.
    fold_powers<0, kScores>(sc, scale, {__fmul_rn(rows[0].top, scale.log2), __fmul_rn(rows[1].top, scale.log2)},
                            partial);
    join(partial, added, [](float a, float b) { return a + b; });
    // A branch on what becomes of all powers: without one, the assembler moves the wait in front of them. The wait is
    // not in it: each warp votes for itself, and the four must come to the same one. f16 ends at 2^16; NaN does not
    // fit.
    if (!__all_sync(kWholeWarp, folds && added[0] <= 0x1p15F && added[1] <= 0x1p15F)) {
      again();
      float seen[2];
      float factor[2];
      maxima<0, kScores>(sc, seen);
      if (follow(seen, scale, factor)) raise(factor);
#pragma unroll
      for (int i = 0; i < kChains; ++i) partial[i] = 0;
      powers<0, kScores>(sc, scale, partial);
      join(partial, added, [](float a, float b) { return a + b; });
    }
    between();
    pack<0, kScores>(sc, prob);
#pragma unroll
    for (int r = 0; r < 2; ++r) sums[r] += added[r];
  }

  // After a tile's last block, of the thread's row r: the sum of P, in all four lanes that share the row.
  __device__ __forceinline__ float row_sum(int r) const {
    float sum = sums[r];
    sum += __shfl_xor_sync(kWholeWarp, sum, 1);
    sum += __shfl_xor_sync(kWholeWarp, sum, 2);
    return sum;
  }
  __device__ __forceinline__ float log_sum_exp(int r, float row_sum, const SoftmaxScale& scale) const {
    return rows[r].log_sum_exp(row_sum, scale);
  }

 private:
  static constexpr int kHalf = kSteps / 2 * 8;  // of the scores: whole steps
  static_assert(kChains % 4 == 0);

  template <int kBegin, int kEnd>
  __device__ __forceinline__ static void maxima(const float (&sc)[kScores], float (&seen)[2]) {
    float top[kChains];
#pragma unroll
    for (int i = kBegin; i < kEnd; ++i)
      top[i % kChains] = i < kBegin + kChains ? sc[i] : fmaxf(top[i % kChains], sc[i]);
    join(top, seen, [](float a, float b) { return fmaxf(a, b); });
  }

  // The chains of each row.
  template <class Join>
  __device__ __forceinline__ static void join(const float (&chains)[kChains], float (&row)[2], Join&& two) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      row[r] = two(chains[2 * r], chains[2 * r + 1]);
#pragma unroll
      for (int i = 4 + 2 * r; i < kChains; i += 4) row[r] = two(row[r], two(chains[i], chains[i + 1]));
    }
  }

  // Lets m follow the scores `seen` where they pass it by far. True if it was raised for some row of this warp;
  // `factor` is then what earlier P are to be multiplied by.
  __device__ __forceinline__ bool follow(const float (&seen)[2], const SoftmaxScale& scale, float (&factor)[2]) {
    const bool passed = rows[0].passed_by(seen[0], scale) || rows[1].passed_by(seen[1], scale);
    if (!__any_sync(kWholeWarp, passed)) return false;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float score = seen[r];
      score = fmaxf(score, __shfl_xor_sync(kWholeWarp, score, 1));
      score = fmaxf(score, __shfl_xor_sync(kWholeWarp, score, 2));
      factor[r] = rows[r].raise(score, scale);
      sums[r] *= factor[r];
    }
    folds = __all_sync(kWholeWarp, rows[0].folds(scale) && rows[1].folds(scale));
    return true;
  }

  // P of scores kBegin .. kEnd - 1, in place; adds them to the chains.
  template <int kBegin, int kEnd>
  __device__ __forceinline__ void powers(float (&sc)[kScores], const SoftmaxScale& scale,
                                         float (&partial)[kChains]) const {
    float offset[2] = {rows[0].offset(scale), rows[1].offset(scale)};
    if (!folds) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (rows[r].folds(scale)) continue;
        offset[r] = 0;
#pragma unroll
        for (int i = kBegin; i < kEnd; ++i)
          if (i / 2 % 2 == r) sc[i] = fminf(sc[i], FLT_MAX) - rows[r].top;
      }
    }
    fold_powers<kBegin, kEnd>(sc, scale, offset, partial);
  }
  template <int kBegin, int kEnd>
  __device__ __forceinline__ static void fold_powers(float (&sc)[kScores], const SoftmaxScale& scale,
                                                     const float (&offset)[2], float (&partial)[kChains]) {
#pragma unroll
    for (int i = kBegin; i < kEnd; ++i) {
      sc[i] = exp2_approx(fmaf(sc[i], scale.log2, -offset[i / 2 % 2]));
      partial[i % kChains] += sc[i];
    }
  }

  // P as the A fragments of P V: accumulators of 16 columns are the four registers of one step.
  template <int kBegin, int kEnd>
  __device__ __forceinline__ static void pack(const float (&sc)[kScores], std::uint32_t (&prob)[kSteps][4]) {
#pragma unroll
    for (int i = kBegin; i < kEnd; i += 2) prob[i / 8][i / 2 % 4] = pack_pair<T>(sc[i], sc[i + 1]);
  }

  RowSoftmax rows[2];
  float sums[2];  // of P: this thread's share of its two rows
  bool folds = true;
};

#endif

}  // namespace inferometer
