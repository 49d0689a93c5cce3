// attention_prefill / flash_sm80: from a problem to a launch of one of the kernel's configurations.
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>

#include "harness/operator/cuda_check.cuh"
#include "kernels/attention_prefill/flash_sm80.cuh"
#include "kernels/attention_prefill/flash_sm80_schedule.hpp"
#include "kernels/attention_prefill/prefill_limits.hpp"
#include "kernels/common/gpu_limits.hpp"

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

// K and V of one KV head, of the longest sequence.
template <class Config>
std::int64_t kv_head_bytes(const AttentionPrefillProblem& problem) {
  return problem.kv_len * (problem.head_dim + problem.v_dim()) * std::int64_t{sizeof(typename Config::T)};
}

template <class Config>
FlashParams plain_params(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& t) {
  const std::int64_t tiles = (problem.q_len + Config::kTileQ - 1) / Config::kTileQ;
  const std::int64_t heads_per_kv = problem.q_heads / problem.kv_heads;
  return {
      .q = t.q,
      .k = t.k,
      .v = t.v,
      .o = t.o,
      .lse = t.lse,
      .q_stride = problem.q_heads * problem.head_dim,
      .kv_stride = problem.k_stride(),
      .q_heads = static_cast<int>(problem.q_heads),
      .heads_per_kv = static_cast<int>(heads_per_kv),
      .q_len = static_cast<int>(problem.q_len),
      .head_dim = static_cast<int>(problem.head_dim),
      .visible = VisibleKeys(static_cast<int>(problem.q_len), static_cast<int>(problem.kv_len), problem.causal),
      .scale = SoftmaxScale(problem.head_dim),
      .schedule = flash_sm80_schedule(problem.causal, problem.batch * problem.q_heads, tiles, heads_per_kv,
                                      kv_head_bytes<Config>(problem), cache_bytes_for_keys()),
  };
}

template <class Config>
GeneralFlashParams general_params(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& t) {
  GeneralFlashParams params;
  static_cast<FlashParams&>(params) = plain_params<Config>(problem, t);
  params.cu_q_lens = t.cu_q_lens;
  params.cu_kv_lens = t.cu_kv_lens;
  params.block_table = t.block_table;
  params.v_stride = problem.v_stride();
  params.o_stride = problem.q_heads * problem.v_dim();
  params.total_q = problem.total_q();
  params.batch = static_cast<int>(problem.batch);
  params.kv_len = static_cast<int>(problem.kv_len);
  params.v_dim = static_cast<int>(problem.v_dim());
  params.max_blocks = static_cast<int>(problem.max_blocks());
  if (problem.paged()) params.block_size = FastDivide(static_cast<std::uint32_t>(problem.block_size));
  params.window_left = static_cast<int>(problem.window_left);
  params.causal = problem.causal;
  if (problem.soft_cap > 0) {
    const double cap = problem.soft_cap * std::sqrt(static_cast<double>(problem.head_dim));
    params.cap = static_cast<float>(cap);
    params.inverse_cap = static_cast<float>(1 / cap);
  }
  if (problem.ragged())  // one head's tiles of all sequences
    params.schedule = flash_sm80_schedule(problem.causal, problem.q_heads,
                                          ragged_tile_numbers(params.total_q, problem.batch, Config::kTileQ),
                                          params.heads_per_kv, kv_head_bytes<Config>(problem), cache_bytes_for_keys());
  return params;
}

template <class Config>
void launch_flash_kernel(const typename Config::Params& params, Stream stream) {
  constexpr auto kKernel = &flash_sm80_kernel<Config>;
  INFEROMETER_CUDA_CHECK(
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::kSharedBytes));
  kKernel<<<static_cast<unsigned>(params.schedule.blocks()), Config::kThreads, Config::kSharedBytes, stream>>>(params);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

template <class Config>
void launch_flash_config(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& t, Stream stream) {
  if (!plain_prefill_only(problem).has_value()) {
    launch_flash_kernel<Config>(plain_params<Config>(problem, t), stream);
  } else {
    using General = GeneralFlashConfig<Config>;
    launch_flash_kernel<General>(general_params<General>(problem, t), stream);
  }
}

// Wide where a block can have that much shared memory, else Narrow.
template <class Wide, class Narrow>
void launch_flash_that_fits(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& t, Stream stream) {
  constexpr int kStaticBytes = 512;  // the place and the barriers take less
  if (current_gpu_limits().block_smem_bytes >= Wide::kSharedBytes + kStaticBytes) {
    launch_flash_config<Wide>(problem, t, stream);
  } else {
    launch_flash_config<Narrow>(problem, t, stream);
  }
}

}  // namespace inferometer
