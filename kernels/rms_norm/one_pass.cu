// rms_norm / cuda.one_pass: a row is read once, kept in registers while its squares are summed, and written once.
//
//   in   x      [rows, hidden]              f16, bf16
//        w      [hidden]                    as x
//        h      [rows, hidden], residual    as x
//   out  h_sum  [rows, hidden], residual    as x; may be h
//        y      [rows, hidden]              as x
//
// Bound by memory: 4 bytes an element, 8 with residual, and no reuse but that of w, which stays in the L1. A row is
// held by a part of a warp, by a warp or by a block (row_plan.hpp), so that its sum is one of shuffles in a fixed
// order. What is read leaves the caches first: the next kernel wants y, and the next norm h_sum.
#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/common/block_reduce.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/rms_norm/row_plan.hpp"
#include "reference/rms_norm/problem.hpp"

namespace inferometer::rms_norm {
namespace {

constexpr unsigned kWholeWarp = 0xffffffffU;
constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();  // blocks of a grid

// Squares of bf16 pass the range of f32 from 2^64 on, and a row's sum a little earlier. Times 2^-80 the largest row of
// kMostHidden elements sums to 2^110, and of a row that had passed, all elements that count stay normal numbers. Its
// norm is the same: eps is nothing next to such a mean.
constexpr float kScaleOfHugeRows = 0x1p-80F;

struct NormArgs {
  const uint4* x;
  const uint4* w;
  const uint4* h;
  uint4* h_sum;
  uint4* y;
  std::int64_t rows;
  std::int32_t row_vecs;
  float hidden;
  float eps;
};

// Applies `pair_of(x pair, other pair)`, all packed, to the four pairs of two vectors.
template <class PairOf>
__device__ __forceinline__ uint4 for_pairs(const uint4& x, const uint4& other, const PairOf& pair_of) {
  return {pair_of(x.x, other.x), pair_of(x.y, other.y), pair_of(x.z, other.z), pair_of(x.w, other.w)};
}

template <class T>
__device__ __forceinline__ float sum_of_squares(const uint4 (&x)[kThreadVecs]) {
  float sum = 0;
#pragma unroll
  for (const uint4& vector : x)
    for (const std::uint32_t pair : {vector.x, vector.y, vector.z, vector.w}) {
      const float2 value = unpack_pair<T>(pair);
      sum += value.x * value.x + value.y * value.y;
    }
  return sum;
}

// Over the threads of a row, for each of them. `partial`: as reduce_block says.
__device__ __forceinline__ float row_sum(float value, float* partial) {
  if (blockDim.x > 32) return reduce_block(value, 0.0F, partial, [](float a, float b) { return a + b; });
  for (unsigned distance = blockDim.x / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(kWholeWarp, value, distance);
  return value;
}

// Blocks of [block_rows, row_threads] threads; those of rows past the end hold zeros and store nothing.
template <class T, bool kResidual>
__global__ void __launch_bounds__(kMostThreads) rms_norm_kernel(const __grid_constant__ NormArgs args) {
  __shared__ float partial[2][kMostWarps];
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const std::int64_t row_begin = row * args.row_vecs;
  const auto vec_of = [&](int v) { return static_cast<int>(threadIdx.x + v * blockDim.x); };
  const auto holds = [&](int v) { return row < args.rows && vec_of(v) < args.row_vecs; };

  uint4 x[kThreadVecs] = {};
  uint4 w[kThreadVecs] = {};
  uint4 h[kThreadVecs] = {};
#pragma unroll
  for (int v = 0; v < kThreadVecs; ++v) {
    if (!holds(v)) continue;
    x[v] = __ldcs(args.x + row_begin + vec_of(v));
    if constexpr (kResidual) h[v] = __ldcs(args.h + row_begin + vec_of(v));
    w[v] = __ldg(args.w + vec_of(v));
  }
  if constexpr (kResidual) {  // the norm is that of the sum as it is stored
#pragma unroll
    for (int v = 0; v < kThreadVecs; ++v) {
      x[v] = for_pairs(x[v], h[v], [](std::uint32_t x_pair, std::uint32_t h_pair) {
        const float2 a = unpack_pair<T>(x_pair);
        const float2 b = unpack_pair<T>(h_pair);
        return pack_pair<T>(a.x + b.x, a.y + b.y);
      });
      if (holds(v)) args.h_sum[row_begin + vec_of(v)] = x[v];
    }
  }

  float sum = row_sum(sum_of_squares<T>(x), partial[0]);
  float eps = args.eps;
  if constexpr (HalfTraits<T>::kDtype == Dtype::bf16) {
    if (__any_sync(kWholeWarp, isinf(sum))) {  // a vote, for shuffles follow and a warp may hold several rows
      if (isinf(sum)) {
        eps = 0;
        for (uint4& vector : x)
          vector = for_pairs(vector, vector, [](std::uint32_t pair, std::uint32_t) {
            const float2 value = unpack_pair<T>(pair);
            return pack_pair<T>(value.x * kScaleOfHugeRows, value.y * kScaleOfHugeRows);
          });
      }
      sum = row_sum(sum_of_squares<T>(x), partial[1]);
    }
  }
  const float inverse = rsqrtf(sum / args.hidden + eps);
#pragma unroll
  for (int v = 0; v < kThreadVecs; ++v)
    if (holds(v))
      args.y[row_begin + vec_of(v)] = for_pairs(x[v], w[v], [&](std::uint32_t x_pair, std::uint32_t w_pair) {
        const float2 value = unpack_pair<T>(x_pair);
        const float2 gain = unpack_pair<T>(w_pair);
        return pack_pair<T>(value.x * inverse * gain.x, value.y * inverse * gain.y);
      });
}

std::optional<std::string> unsupported(const RmsNormProblem& p) {
  if (p.hidden % kVecElems != 0 || p.hidden > kMostHidden)
    return "hidden must be a multiple of " + std::to_string(kVecElems) + " up to " + std::to_string(kMostHidden) +
           ", got " + std::to_string(p.hidden);
  if (p.rows > kMostRows)
    return "rows must be at most " + std::to_string(kMostRows) + ", got " + std::to_string(p.rows);
  return std::nullopt;
}

void run(const RmsNormProblem& p, const RmsNormTensors& t, const Launch& launch) {
  const RowPlan plan = plan_rows(p.hidden);
  const NormArgs args{.x = static_cast<const uint4*>(t.x),
                      .w = static_cast<const uint4*>(t.w),
                      .h = static_cast<const uint4*>(t.h),
                      .h_sum = static_cast<uint4*>(t.h_sum),
                      .y = static_cast<uint4*>(t.y),
                      .rows = p.rows,
                      .row_vecs = static_cast<std::int32_t>(p.hidden / kVecElems),
                      .hidden = static_cast<float>(p.hidden),
                      .eps = static_cast<float>(p.eps)};
  const dim3 block(static_cast<unsigned>(plan.row_threads), static_cast<unsigned>(plan.block_rows));
  const auto blocks = static_cast<unsigned>((p.rows + plan.block_rows - 1) / plan.block_rows);
  with_half_type(p.dtype, [&]<class T>() {
    if (p.residual) {
      rms_norm_kernel<T, true><<<blocks, block, 0, launch.stream>>>(args);
    } else {
      rms_norm_kernel<T, false><<<blocks, block, 0, launch.stream>>>(args);
    }
  });
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

const RegisterVariant<RmsNorm> registered{{
    .name = "cuda.one_pass",
    .summary = "16-byte loads, rows kept in registers, sums of shuffles in f32",
    .min_sm = 80,
    .unsupported = &unsupported,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer::rms_norm
