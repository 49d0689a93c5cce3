// What the kernel of attention_decode gets by value.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/softmax_state.hpp"
#include "kernels/common/fast_divide.hpp"

namespace inferometer {

struct DecodeArgs {
  const void* q = nullptr;                    // [batch, q_len, q_heads, head_dim]
  const void* k = nullptr;                    // rows; row_map.cuh says which row a token has
  const void* v = nullptr;                    // as k
  const void* kv_scales = nullptr;            // [rows, groups, 2] f16, for codes
  const std::int32_t* seq_lens = nullptr;     // [batch]
  const std::int32_t* block_table = nullptr;  // [batch, max_blocks]; null: a contiguous cache
  void* o = nullptr;                          // as q
  float* lse = nullptr;                       // [batch, q_heads, q_len]

  // Workspace, used when parts > 1 are merged through global memory. A unit is one row block of one KV head of one
  // sequence.
  std::uint32_t* arrivals = nullptr;       // [units]: parts done; zero before and after a launch
  SoftmaxState* partial_states = nullptr;  // [units, parts, block_rows]
  float* partial_outputs = nullptr;  // [units, parts, block_rows, head_dim]: relative to the state's max, not divided

  std::int32_t kv_heads = 0;
  FastDivide group = {};  // query heads that share a KV head
  std::int32_t q_len = 0;
  FastDivide block_tokens = {};  // so many tokens, from a multiple of it on, lie in neighbouring rows: those of a block
  std::int32_t max_blocks = 0;   // columns of the block table
  std::uint32_t rows_per_block = 0;  // rows from a block to the next
  std::uint32_t rows_per_head = 0;   // and from a KV head to the next: codes; 0: heads lie within a row
  std::int64_t k_row_bytes = 0;      // from a row to the next
  std::int64_t v_row_bytes = 0;
  std::int32_t head_bytes = 0;     // from a KV head to the next within a row; 0: codes
  std::int32_t groups = 0;         // scales of a row
  std::int32_t group_shift = 0;    // log2 of the 32-dimension slices that share a scale, when groups > 1
  std::int32_t window_left = -1;   // keys before its own that a query sees; -1: all
  std::int32_t row_blocks = 0;     // blocks of query rows, group * q_len in all
  FastDivide parts = {};           // of every sequence; trailing ones may be empty
  std::int32_t keys_per_part = 0;  // 0: each sequence is cut evenly (partition.hpp)
  std::int32_t early_keys = 0;     // of every sequence, that copies may take before its length is known; 0: none
  bool cluster = false;            // the parts of a unit are a thread block cluster
  float scale = 0;                 // 1 / sqrt(head_dim)
  float soft_cap = 0;              // of the scores as they come out of the product; 0: none
};

}  // namespace inferometer
