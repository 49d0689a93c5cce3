// What the kernels of kv_append get by value. 64-bit where it counts bytes or rows of the cache, 32-bit where it counts
// new tokens: append_launch.cuh refuses more of them.
#pragma once

#include <cstdint>

#include "kernels/common/fast_divide.hpp"

namespace inferometer::append {

// Elements of one 16-byte load of new keys or values.
inline constexpr int kVectorElements = 8;

// Quantised only. A row, the key or value of one token and head, is held by neighbouring lanes.
inline constexpr int kLaneVectors = 2;    // of a row, in one lane
inline constexpr int kMostRowLanes = 16;  // head_dim 256

struct AppendArgs {
  const void* k_new = nullptr;                // [tokens, kv_heads, head_dim], tokens = batch * new_tokens
  const void* v_new = nullptr;                // as k_new
  const std::int32_t* seq_lens = nullptr;     // [batch]
  const std::int32_t* block_table = nullptr;  // [batch, max_blocks], paged only
  void* k = nullptr;                          // the cache, slots.cuh says where a token lies in it
  void* v = nullptr;
  void* kv_scales = nullptr;  // quantised only: [rows, groups] pairs of f16, K's and V's

  std::uint32_t tokens = 0;
  FastDivide new_tokens = {};   // of each sequence
  FastDivide span = {};         // tokens of a block, or reserved for a sequence of a contiguous cache
  std::int32_t max_blocks = 0;  // paged: columns of the block table
  FastDivide kv_heads = {};
  FastDivide token_vectors = {};   // vectors of one token, kv_heads * head_dim / 8
  std::uint32_t head_vectors = 0;  // vectors of one head

  // Quantised only. A row is held by 2^row_lanes_log2 lanes, of which the last ones may be idle; a group of elements
  // that share a scale by 2^group_lanes_log2.
  std::int32_t row_lanes_log2 = 0;
  std::int32_t group_lanes_log2 = 0;
  std::uint32_t groups = 0;    // of a row
  std::int64_t row_bytes = 0;  // from one row of codes to the next
};

}  // namespace inferometer::append
