// attention_prefill / flash_sm80: from a problem to a launch of one of the kernel's configurations.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "harness/operator/cuda_check.cuh"
#include "kernels/attention_prefill/flash_sm80.cuh"

namespace inferometer {

// Half of the current device's L2 holds the keys and values of the heads that run together; the rest is for the tensors
// that stream through.
inline std::int64_t cache_bytes_for_keys() {
  int device = 0;
  int bytes = 0;
  INFEROMETER_CUDA_CHECK(cudaGetDevice(&device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device));
  return bytes / 2;
}

template <class Config>
void launch_flash_config(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& t, Stream stream) {
  const std::int64_t tiles = (problem.q_len + Config::kTileQ - 1) / Config::kTileQ;
  const std::int64_t heads_per_kv = problem.q_heads / problem.kv_heads;
  const std::int64_t kv_head_bytes = 2 * problem.kv_len * problem.head_dim * std::int64_t{sizeof(typename Config::T)};
  const FlashParams params{
      .q = t.q,
      .k = t.k,
      .v = t.v,
      .o = t.o,
      .lse = t.lse,
      .q_stride = problem.q_heads * problem.head_dim,
      .kv_stride = problem.kv_heads * problem.head_dim,
      .q_heads = static_cast<int>(problem.q_heads),
      .heads_per_kv = static_cast<int>(heads_per_kv),
      .q_len = static_cast<int>(problem.q_len),
      .head_dim = static_cast<int>(problem.head_dim),
      .visible = VisibleKeys(static_cast<int>(problem.q_len), static_cast<int>(problem.kv_len), problem.causal),
      .scale = SoftmaxScale(problem.head_dim),
      .schedule = make_tile_schedule(problem.batch * problem.q_heads, tiles, heads_per_kv, kv_head_bytes,
                                     cache_bytes_for_keys()),
  };
  constexpr auto kKernel = &flash_sm80_kernel<Config>;
  INFEROMETER_CUDA_CHECK(
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::kSharedBytes));
  kKernel<<<static_cast<unsigned>(params.schedule.blocks()), Config::kThreads, Config::kSharedBytes, stream>>>(params);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

}  // namespace inferometer
