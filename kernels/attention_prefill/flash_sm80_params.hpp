// attention_prefill / flash_sm80: what the kernel is given, and its launchers, one per tile width.
#pragma once

#include <cstdint>

#include "harness/operator/variant.hpp"
#include "kernels/attention_prefill/softmax_scale.hpp"
#include "kernels/attention_prefill/tile_schedule.cuh"
#include "kernels/attention_prefill/visible_keys.cuh"
#include "kernels/common/fast_divide.hpp"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {

struct FlashParams {
  const void* q = nullptr;  // tensors as in AttentionPrefillTensors
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;
  float* lse = nullptr;
  std::int64_t q_stride = 0;   // elements from one query to the next: q_heads * head_dim
  std::int64_t kv_stride = 0;  // elements from one key to the next
  int q_heads = 0;
  int heads_per_kv = 0;
  int q_len = 0;
  int head_dim = 0;
  VisibleKeys visible;
  SoftmaxScale scale;
  TileSchedule schedule;
};

// What a plain problem (plain_prefill_only) does not need.
struct GeneralFlashParams : FlashParams {
  const std::int32_t* cu_q_lens = nullptr;    // ragged, else null
  const std::int32_t* cu_kv_lens = nullptr;   // ragged, else null
  const std::int32_t* block_table = nullptr;  // paged, else null
  std::int64_t v_stride = 0;                  // elements from one value to the next
  std::int64_t o_stride = 0;                  // and from one row of O to the next
  std::int64_t total_q = 0;                   // rows of all sequences
  int batch = 0;
  int kv_len = 0;  // equal lengths
  int v_dim = 0;
  int max_blocks = 0;     // columns of the block table
  FastDivide block_size;  // keys of a block
  int window_left = -1;
  bool causal = false;
  float cap = 0;          // c > 0: a score s, as it comes out of the product, becomes c tanh(s / c)
  float inverse_cap = 0;  // 1 / c
};

// For head_dim and v_head_dim up to kHeadDim: 64, 96, 128, 192 or 256. Throws CudaError.
template <int kHeadDim>
void launch_flash_sm80(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors, Stream stream);

}  // namespace inferometer
