// What the kernel of attention_decode gets by value.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/softmax_state.hpp"

namespace inferometer {

struct DecodeArgs {
  const void* q = nullptr;                    // [batch, q_len, q_heads, head_dim]
  const void* k = nullptr;                    // [rows, kv_heads, head_dim]; row_cursors.cuh says which row a token has
  const void* v = nullptr;                    // as k
  const std::int32_t* seq_lens = nullptr;     // [batch]
  const std::int32_t* block_table = nullptr;  // [batch, max_blocks], paged only
  void* o = nullptr;                          // as q
  float* lse = nullptr;                       // [batch, q_heads, q_len]

  // Workspace, used when parts > 1. A unit is one row block of one KV head of one sequence.
  std::uint32_t* arrivals = nullptr;       // [units]: parts done; zero before and after a launch
  SoftmaxState* partial_states = nullptr;  // [units, parts, block_rows]
  float* partial_outputs = nullptr;  // [units, parts, block_rows, head_dim]: relative to the state's max, not divided

  std::int32_t kv_heads = 0;
  std::int32_t group = 0;  // query heads that share a KV head
  std::int32_t q_len = 0;
  std::int32_t capacity = 0;       // contiguous: tokens reserved for each sequence
  std::int32_t block_size = 0;     // paged: tokens in a block
  std::int32_t max_blocks = 0;     // paged: columns of the block table
  std::int32_t row_blocks = 0;     // blocks of query rows, group * q_len in all
  std::int32_t parts = 0;          // of every sequence; trailing ones may be empty
  std::int32_t keys_per_part = 0;  // 0: each sequence is cut evenly (partition.hpp)
  float scale = 0;                 // 1 / sqrt(head_dim)
};

}  // namespace inferometer
