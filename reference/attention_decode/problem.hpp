// attention_decode: the newest q_len queries of each sequence against its whole KV cache, causal among themselves.
// The cache is contiguous (block_size 0) or paged (Kwon et al., SOSP 2023).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "reference/kv_cache/layout.hpp"

namespace inferometer {

struct AttentionDecodeProblem {
  std::int64_t batch = 1;
  std::int64_t context = 0;            // tokens in the cache of every sequence, the newest queries' own included
  std::vector<std::int64_t> contexts;  // or one length per sequence (0 allowed); then `context` is their maximum
  std::int64_t q_len = 1;              // new tokens per sequence; query i sees keys j <= i + context - q_len
  std::int64_t q_heads = 1;
  std::int64_t kv_heads = 1;  // divides q_heads; q head h reads KV head h / (q_heads / kv_heads)
  std::int64_t head_dim = 128;
  std::int64_t block_size = 0;        // tokens per block of a paged cache; 0: contiguous
  std::int64_t kv_bits = 16;          // 16: the cache holds `dtype`; 8, 4: codes and scales (layout.hpp)
  std::string kv_format = "integer";  // of 8-bit codes: integer or fp8_e4m3
  std::int64_t kv_group_size = 0;     // elements of head_dim that share a scale: 32, 64, 128; 0: head_dim
  std::int64_t k_row_stride = 0;      // kv_bits 16: elements from one token of K to the next; 0: kv_heads * head_dim
  std::int64_t v_row_stride = 0;      // and of V; elements between the heads of one token and the next are never used
  std::int64_t window_left = -1;      // a query sees its own key and so many before it; -1: all
  double soft_cap = 0;                // c > 0: a score s becomes c tanh(s / c) before the softmax (Gemma 2); 0: none
  std::int64_t splits = 0;            // parts each sequence is cut into along its context; 0: chosen by the variant
  Dtype dtype = Dtype::f16;           // of Q, K, V and O

  std::int64_t context_of(std::int64_t sequence) const {
    return contexts.empty() ? context : contexts[static_cast<std::size_t>(sequence)];
  }
  // Columns of the block table: blocks of the longest sequence.
  std::int64_t max_blocks() const { return block_size == 0 ? 0 : (context + block_size - 1) / block_size; }
  std::int64_t k_stride() const { return k_row_stride == 0 ? kv_heads * head_dim : k_row_stride; }
  std::int64_t v_stride() const { return v_row_stride == 0 ? kv_heads * head_dim : v_row_stride; }
  std::int64_t groups() const { return kv_group_size == 0 ? 1 : head_dim / kv_group_size; }  // scales of a head
};

// Dense, last index fastest. A query that sees no key has output 0 and log-sum-exp -infinity.
// Slots past a sequence's length hold NaN, entries of the block table past its last block hold -1.
struct AttentionDecodeTensors {
  const void* q = nullptr;                    // [batch, q_len, q_heads, head_dim]                     dtype
  const void* k = nullptr;                    // the cache, contiguous or paged (layout.hpp): dtype, or u8 codes
  const void* v = nullptr;                    // as k
  const std::uint16_t* kv_scales = nullptr;   // kv_bits 8, 4: f16 (layout.hpp); 16: null
  const std::int32_t* seq_lens = nullptr;     // [batch]
  const std::int32_t* block_table = nullptr;  // paged: [batch, max_blocks()]; contiguous: null
  void* o = nullptr;                          // [batch, q_len, q_heads, head_dim]                     dtype
  float* lse = nullptr;                       // [batch, q_heads, q_len]                               natural logarithm
};

struct AttentionDecode {
  static constexpr std::string_view kName = "attention_decode";
  using Problem = AttentionDecodeProblem;
  using Tensors = AttentionDecodeTensors;
};

}  // namespace inferometer
