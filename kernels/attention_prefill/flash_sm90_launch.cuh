// attention_prefill / flash_sm90: from a problem to a launch of one of the kernel's shapes.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "harness/operator/cuda_check.cuh"
#include "kernels/attention_prefill/flash_sm90.cuh"
#include "kernels/attention_prefill/flash_sm90_launch.hpp"
#include "kernels/attention_prefill/flash_sm90_schedule.hpp"
#include "kernels/common/gpu_limits.hpp"
#include "kernels/common/sm90_only.hpp"
#include "kernels/common/tensor_map.hpp"

namespace inferometer {

// Of a cache or of Q: [outer, tokens, heads, dim], `stride` elements from one token to the next.
inline CUtensorMap head_map(Dtype dtype, const void* base, std::int64_t outer, std::int64_t tokens, std::int64_t heads,
                            std::int64_t dim, std::int64_t stride, int box_tokens) {
  const auto size = [](std::int64_t n) { return static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1)); };
  const auto bytes = static_cast<std::uint64_t>(dtype_bytes(dtype));
  return make_tensor_map(
      dtype, base,
      TensorMapShape<4>{.sizes = {size(dim), size(tokens), size(heads), size(outer)},
                        .stride_bytes = {size(stride) * bytes, size(dim) * bytes, size(tokens) * size(stride) * bytes},
                        .box = {64, static_cast<std::uint32_t>(box_tokens), 1, 1}});
}

// The same of a paged cache whose blocks are whole groups of 8 tokens: [block, group, panel of any head, token of 8, 64
// elements]. A box holds all panels of one head, group after group.
inline CUtensorMap grouped_map(Dtype dtype, const void* base, std::int64_t outer, std::int64_t tokens,
                               std::int64_t heads, std::int64_t dim, std::int64_t stride, int box_tokens) {
  const auto size = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const auto bytes = static_cast<std::uint64_t>(dtype_bytes(dtype));
  return make_tensor_map(
      dtype, base,
      TensorMapShape<5>{
          .sizes = {64, 8, size(heads * dim / 64), size(tokens / 8), size(outer)},
          .stride_bytes = {size(stride) * bytes, 64 * bytes, size(8 * stride) * bytes, size(tokens * stride) * bytes},
          .box = {64, 8, static_cast<std::uint32_t>(dim / 64), static_cast<std::uint32_t>(box_tokens / 8), 1}});
}

template <class Shape>
FlashSm90Params flash_sm90_params(const AttentionPrefillProblem& p, const AttentionPrefillTensors& t,
                                  const Launch& launch, const GpuLimits& gpu) {
  const std::int64_t heads_per_kv = p.q_heads / p.kv_heads;
  FlashSm90Params params;
  params.o = t.o;
  params.lse = t.lse;
  params.cu_q_lens = t.cu_q_lens;
  params.cu_kv_lens = t.cu_kv_lens;
  params.block_table = t.block_table;
  params.next_tile = reinterpret_cast<std::uint32_t*>(launch.workspace.data());
  params.blocks_done = params.next_tile + 1;
  params.o_stride = p.q_heads * Shape::kVDim;
  params.sequence_rows = p.ragged() ? 0 : static_cast<int>(p.q_len);
  params.lse_head_stride = p.ragged() ? p.total_q() : p.q_len;
  params.lse_sequence_stride = p.ragged() ? 0 : p.q_heads * p.q_len;
  params.batch = static_cast<int>(p.batch);
  params.q_heads = static_cast<int>(p.q_heads);
  params.heads_per_kv = static_cast<int>(heads_per_kv);
  params.q_len = static_cast<int>(p.q_len);
  params.kv_len = static_cast<int>(p.kv_len);
  params.kv_box = p.paged() ? static_cast<int>(std::gcd<std::int64_t>(p.block_size, Shape::kTileKv)) : Shape::kTileKv;
  params.block_size = static_cast<int>(p.block_size);
  params.max_blocks = static_cast<int>(p.max_blocks());
  params.causal = p.causal;
  params.clean_values = p.paged() || p.ragged();
  params.window_left = static_cast<int>(std::min(p.window_left, p.kv_len));
  params.scale = SoftmaxScale(p.head_dim);
  if (p.soft_cap > 0) {
    const double cap = p.soft_cap * std::sqrt(static_cast<double>(p.head_dim));
    params.cap = static_cast<float>(cap);
    params.inverse_cap = static_cast<float>(1 / cap);
  }

  const std::int64_t q_outer = p.ragged() ? 1 : p.batch;
  params.q = head_map(p.dtype, t.q, q_outer, p.total_q() / q_outer, p.q_heads, p.head_dim, p.q_heads * p.head_dim, 64);
  // The number of blocks of a paged cache is not known here: block numbers come from the table.
  const std::int64_t kv_outer = p.paged() ? std::int64_t{1} << 31 : q_outer;
  const std::int64_t kv_tokens = p.paged() ? p.block_size : p.total_kv() / q_outer;
  constexpr auto kMap = Shape::kGrouped ? &grouped_map : &head_map;
  params.k = kMap(p.dtype, t.k, kv_outer, kv_tokens, p.kv_heads, p.head_dim, p.k_stride(), params.kv_box);
  params.v = kMap(p.dtype, t.v, kv_outer, kv_tokens, p.kv_heads, p.v_dim(), p.v_stride(), params.kv_box);

  params.schedule = flash_sm90_schedule(p, Shape::kTileQ, gpu.sm_count * Shape::kTeams, gpu.l2_bytes);
  return params;
}

template <class T, class Shape, bool kSoftCap>
void launch_flash_sm90_kernel(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                              const Launch& launch) {
  constexpr auto kKernel = &flash_sm90_kernel<T, Shape, kSoftCap>;
  constexpr int kSharedBytes = sizeof(FlashSm90Shared<Shape>[Shape::kTeams]);
  static_assert(kSharedBytes <= 227 * 1024);
  require_sm90_code(reinterpret_cast<const void*>(kKernel), "flash_sm90");
  INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  const GpuLimits gpu = current_gpu_limits();
  const FlashSm90Params params = flash_sm90_params<Shape>(problem, tensors, launch, gpu);
  kKernel<<<static_cast<unsigned>(gpu.sm_count), Shape::kThreads, kSharedBytes, launch.stream>>>(params);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

// By the problem's dtype, and whether its scores are capped: tanhf needs registers of its own.
template <class Shape, class CappedShape = Shape>
void launch_flash_sm90_shape(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                             const Launch& launch) {
  with_half_type(problem.dtype, [&]<class T>() {
    if (problem.soft_cap > 0) {
      launch_flash_sm90_kernel<T, CappedShape, true>(problem, tensors, launch);
    } else {
      launch_flash_sm90_kernel<T, Shape, false>(problem, tensors, launch);
    }
  });
}

}  // namespace inferometer
