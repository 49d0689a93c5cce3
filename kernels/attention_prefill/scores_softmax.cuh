// attention_prefill / materialized, the step between its two products: scale, soft cap, causal mask and window, softmax
// and log-sum-exp of each row of S, in place.
//
//   in   scores  [rows, pitch]  f32, row r is query r % q_len of head r / q_len
//   out  P       16-bit, over the first half of each row of scores
//        lse     [rows]         f32
//
// Bandwidth bound: 4 bytes read and 2 written per visible score. A row that its threads can hold in registers (32
// scores a thread) is read once; a longer one twice. Rows of masked keys are not read; P is zero there, since the
// product with V reads whole rows.
#pragma once

#include <cfloat>
#include <cstdint>
#include <limits>

#include "kernels/attention_prefill/softmax_scale.hpp"
#include "kernels/attention_prefill/visible_keys.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/ptx/exp2.cuh"

namespace inferometer {

struct ScoresSoftmaxParams {
  float* scores = nullptr;  // 16-byte aligned
  float* lse = nullptr;
  std::int64_t rows = 0;
  std::int64_t pitch = 0;  // scores from one row to the next, a multiple of 8
  int q_len = 0;
  VisibleKeys visible;
  SoftmaxScale scale;
  float cap = 0;          // c > 0: a score s, before the scale, becomes c tanh(s / c)
  float inverse_cap = 0;  // 1 / c
};

// The largest score of some keys, and the sum of 2^(c (S - max)) over them.
struct SoftmaxPart {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

// Of both parts together; the empty part (-infinity, 0) changes nothing.
__device__ __forceinline__ SoftmaxPart merge(const SoftmaxPart& a, const SoftmaxPart& b, float scale_log2) {
  const float max = fmaxf(a.max, b.max);
  const float a_sum = a.max == max ? a.sum : a.sum * exp2_approx((a.max - max) * scale_log2);
  const float b_sum = b.max == max ? b.sum : b.sum * exp2_approx((b.max - max) * scale_log2);
  return {.max = max, .sum = a_sum + b_sum};
}

// Over the kThreads threads of a row, all of one warp or all of the block: the same answer in each of them.
template <int kThreads>
__device__ __forceinline__ SoftmaxPart merge_row(SoftmaxPart part, float scale_log2) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    const SoftmaxPart other{.max = __shfl_xor_sync(0xffffffffU, part.max, distance),
                            .sum = __shfl_xor_sync(0xffffffffU, part.sum, distance)};
    part = merge(part, other, scale_log2);
  }
  if constexpr (kThreads > 32) {
    constexpr int kWarps = kThreads / 32;
    __shared__ SoftmaxPart parts[kWarps];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
    __syncthreads();
    part = parts[0];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) part = merge(part, parts[w], scale_log2);
  }
  return part;
}

// kThreads threads a row: 32 with several rows a block, or the whole block. kBent: with a window or a soft cap.
template <class T, int kThreads, int kBlockThreads, bool kBent>
__global__ void __launch_bounds__(kBlockThreads) scores_softmax_kernel(const ScoresSoftmaxParams p) {
  static_assert(kThreads == 32 || kThreads == kBlockThreads);
  constexpr int kVectors = 8;  // of 4 scores a thread holds
  constexpr int kChunk = kThreads * kVectors * 4;
  const int thread = static_cast<int>(threadIdx.x) % kThreads;
  const std::int64_t row = std::int64_t{blockIdx.x} * (kBlockThreads / kThreads) + threadIdx.x / kThreads;
  if (row >= p.rows) return;  // whole warps only: a row's threads stay together

  float* const scores = p.scores + row * p.pitch;
  const int last = p.visible.last(static_cast<int>(row % p.q_len));
  const int first_seen = kBent ? p.visible.first(static_cast<int>(row % p.q_len)) : 0;
  const int keys = p.visible.kv_len;
  const bool held = keys <= kChunk;

  float s[kVectors][4];
  const auto load = [&](int first) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int key = first + (v * kThreads + thread) * 4;
      float4 quad{};
      if (key <= last && (!kBent || key + 3 >= first_seen)) quad = *reinterpret_cast<const float4*>(scores + key);
      float values[4] = {quad.x, quad.y, quad.z, quad.w};
      if constexpr (kBent) {
        if (p.cap > 0.0F) {
#pragma unroll
          for (int i = 0; i < 4; ++i) values[i] = p.cap * tanhf(values[i] * p.inverse_cap);
        }
      }
      // A score past the range of f32 takes its largest value, so that no difference is infinity - infinity.
#pragma unroll
      for (int i = 0; i < 4; ++i)
        s[v][i] = key + i <= last && (!kBent || key + i >= first_seen) ? fminf(values[i], FLT_MAX)
                                                                       : -std::numeric_limits<float>::infinity();
    }
  };
  SoftmaxPart part;
  for (int first = 0; first <= last; first += kChunk) {
    load(first);
    SoftmaxPart chunk;
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
#pragma unroll
      for (int i = 0; i < 4; ++i) chunk.max = fmaxf(chunk.max, s[v][i]);
    const float top = chunk.max == -std::numeric_limits<float>::infinity() ? 0.0F : chunk.max;
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
#pragma unroll
      for (int i = 0; i < 4; ++i) chunk.sum += exp2_approx((s[v][i] - top) * p.scale.log2);
    part = merge(part, chunk, p.scale.log2);
  }
  part = merge_row<kThreads>(part, p.scale.log2);

  const float inverse = part.sum == 0.0F ? 0.0F : 1.0F / part.sum;
  const float max = part.sum == 0.0F ? 0.0F : part.max;
  T* const probabilities = reinterpret_cast<T*>(scores);
  for (int first = 0; first < keys; first += kChunk) {
    if (!held || last < 0) load(first);
    // P overwrites scores: all of this chunk are in registers before any is written. (P of later chunks stays before
    // their scores.)
    if constexpr (kThreads == 32) {
      __syncwarp();
    } else {
      __syncthreads();
    }
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int key = first + (v * kThreads + thread) * 4;
      if (key >= keys) continue;
      float w[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) w[i] = exp2_approx((s[v][i] - max) * p.scale.log2) * inverse;
      *reinterpret_cast<uint2*>(probabilities + key) = {pack_pair<T>(w[0], w[1]), pack_pair<T>(w[2], w[3])};
    }
  }
  constexpr float kLn2 = 0.693147180559945309F;
  if (thread == 0)
    p.lse[row] =
        part.sum == 0.0F ? -std::numeric_limits<float>::infinity() : part.max * p.scale.log2 * kLn2 + logf(part.sum);
}

}  // namespace inferometer
