// attention_prefill / flash_sm80: what the kernel is given, and its launchers, one per tile width.
#pragma once

#include <cstdint>

#include "harness/operator/variant.hpp"
#include "kernels/attention_prefill/softmax_scale.hpp"
#include "kernels/attention_prefill/tile_schedule.cuh"
#include "kernels/attention_prefill/visible_keys.cuh"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {

struct FlashParams {
  const void* q = nullptr;  // tensors as in AttentionPrefillTensors
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;
  float* lse = nullptr;
  std::int64_t q_stride = 0;   // elements from one query to the next: q_heads * head_dim
  std::int64_t kv_stride = 0;  // elements from one key to the next: kv_heads * head_dim
  int q_heads = 0;
  int heads_per_kv = 0;
  int q_len = 0;
  int head_dim = 0;
  VisibleKeys visible;
  SoftmaxScale scale;
  TileSchedule schedule;
};

// For head_dim up to kHeadDim: 64, 96, 128, 192 or 256. Throws CudaError.
template <int kHeadDim>
void launch_flash_sm80(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors, Stream stream);

}  // namespace inferometer
