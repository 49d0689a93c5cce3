// attention_prefill: O = softmax(S + M) V per head, S = Q K^T / sqrt(head_dim) (Vaswani et al. 2017, eq. 1), with the
// log-sum-exp of each row of S + M as second output. Sequences are of equal length, or of their own and packed one
// after the other (ragged). Keys and values lie in arrays, or in the blocks of a paged KV cache (Kwon et al., SOSP
// 2023): chunked prefill, where the newest q_len tokens of a sequence read all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct AttentionPrefillProblem {
  std::int64_t batch = 1;
  std::int64_t q_heads = 1;
  std::int64_t kv_heads = 1;               // divides q_heads; q head h reads KV head h / (q_heads / kv_heads)
  std::int64_t q_len = 1;                  // queries of every sequence; ragged: the most of any
  std::int64_t kv_len = 1;                 // keys of every sequence, 0 allowed; ragged: the most of any
  std::vector<std::int64_t> q_lens = {};   // ragged: queries of each sequence, 0 allowed; else empty
  std::vector<std::int64_t> kv_lens = {};  // ragged: keys of each sequence, 0 allowed; else empty
  std::int64_t head_dim = 64;              // of Q and K
  std::int64_t v_head_dim = 0;             // of V and O; 0: head_dim
  std::int64_t block_size = 0;             // keys per block of a paged cache; 0: contiguous
  std::int64_t k_row_stride = 0;           // elements from one key to the next; 0: kv_heads * head_dim
  std::int64_t v_row_stride = 0;  // and of V, 0: kv_heads * v_dim(); elements past a token's heads are never used
  std::int64_t window_left = -1;  // causal: a query sees its own key and so many before it; -1: all
  double soft_cap = 0;            // c > 0: a score s becomes c tanh(s / c) before the softmax (Gemma 2); 0: none
  bool causal = false;       // bottom-right aligned: query i of a sequence sees keys j <= i + its kv_len - its q_len
  Dtype dtype = Dtype::f16;  // of Q, K, V and O

  bool ragged() const { return !q_lens.empty(); }
  bool paged() const { return block_size != 0; }
  std::int64_t q_len_of(std::int64_t b) const { return ragged() ? q_lens[static_cast<std::size_t>(b)] : q_len; }
  std::int64_t kv_len_of(std::int64_t b) const { return ragged() ? kv_lens[static_cast<std::size_t>(b)] : kv_len; }
  // Of all sequences together.
  std::int64_t total_q() const { return ragged() ? std::reduce(q_lens.begin(), q_lens.end()) : batch * q_len; }
  std::int64_t total_kv() const { return ragged() ? std::reduce(kv_lens.begin(), kv_lens.end()) : batch * kv_len; }
  std::int64_t v_dim() const { return v_head_dim == 0 ? head_dim : v_head_dim; }
  std::int64_t k_stride() const { return k_row_stride == 0 ? kv_heads * head_dim : k_row_stride; }
  std::int64_t v_stride() const { return v_row_stride == 0 ? kv_heads * v_dim() : v_row_stride; }
  // Columns of the block table: blocks of the longest sequence.
  std::int64_t max_blocks() const { return paged() ? (kv_len + block_size - 1) / block_size : 0; }
};

// Dense, last index fastest. A query that sees no key has output 0 and log-sum-exp -infinity.
//
//            equal lengths                        ragged: rows of all sequences, packed
//   q        [batch, q_len, q_heads, head_dim]    [total_q, q_heads, head_dim]      dtype
//   k, v     [batch, kv_len, kv_heads, dim]       [total_kv, kv_heads, dim]         dtype  contiguous
//            [blocks, block_size, kv_heads, dim]  the same                          dtype  paged
//   o        [batch, q_len, q_heads, v_dim]       [total_q, q_heads, v_dim]         dtype
//   lse      [batch, q_heads, q_len]              [q_heads, total_q]                f32, natural logarithm
//
// dim is head_dim for K and v_dim for V. Keys are k_stride() elements apart, values v_stride(): what lies between the
// heads of one token and the next holds NaN. So do slots past the end of a sequence in its last block, and blocks that
// belong to none; entries of the block table past a sequence's last block hold -1.
struct AttentionPrefillTensors {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const std::int32_t* cu_q_lens = nullptr;    // ragged: [batch + 1], queries before each sequence; else null
  const std::int32_t* cu_kv_lens = nullptr;   // ragged: [batch + 1], keys before each sequence; else null
  const std::int32_t* block_table = nullptr;  // paged: [batch, max_blocks()]; else null
  void* o = nullptr;
  float* lse = nullptr;
};

struct AttentionPrefill {
  static constexpr std::string_view kName = "attention_prefill";
  using Problem = AttentionPrefillProblem;
  using Tensors = AttentionPrefillTensors;
};

}  // namespace inferometer
