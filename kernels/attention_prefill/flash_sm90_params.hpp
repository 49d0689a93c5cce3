// attention_prefill / flash_sm90: what the kernel is given.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/attention_prefill/softmax_scale.hpp"
#include "kernels/attention_prefill/tile_schedule.cuh"

namespace inferometer {

// Maps: 4 dimensions (element of a head, token, head, sequence or block of the cache); boxes of 64 elements.
struct FlashSm90Params {
  CUtensorMap q{};  // box of 64 tokens
  CUtensorMap k{};  // box of kv_box tokens
  CUtensorMap v{};
  void* o = nullptr;  // as AttentionPrefillTensors
  float* lse = nullptr;
  const std::int32_t* cu_q_lens = nullptr;    // ragged, else null
  const std::int32_t* cu_kv_lens = nullptr;   // ragged, else null
  const std::int32_t* block_table = nullptr;  // paged, else null
  std::uint32_t* next_tile = nullptr;         // tiles given out beyond the first of each block; 0 between launches
  std::uint32_t* blocks_done = nullptr;       // thread blocks that found no tile left; 0 between launches
  std::int64_t o_stride = 0;                  // elements from one token of O to the next
  int sequence_rows = 0;                      // tokens of O from one sequence to the next; ragged: 0
  std::int64_t lse_head_stride = 0;           // rows of lse from one head to the next
  std::int64_t lse_sequence_stride = 0;       // and from one sequence to the next; ragged: 0
  int batch = 0;
  int q_heads = 0;
  int heads_per_kv = 0;
  int q_len = 0;  // equal lengths
  int kv_len = 0;
  int kv_box = 0;      // divides kTileKv and, paged, block_size
  int block_size = 0;  // paged, else 0
  int max_blocks = 0;  // columns of the block table
  bool causal = false;
  bool clean_values = false;  // rows of V past a sequence's end may hold anything, and must become zeros
  int window_left = -1;
  float cap = 0;          // c > 0: a score s, as it comes out of the product, becomes c tanh(s / c)
  float inverse_cap = 0;  // 1 / c
  SoftmaxScale scale;
  TileSchedule schedule;  // equal lengths
};

}  // namespace inferometer
