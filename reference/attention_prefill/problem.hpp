// attention_prefill: O = softmax(Q K^T / sqrt(head_dim) + M) V per head (Vaswani et al. 2017, eq. 1), with the
// log-sum-exp of each row of scores as second output.
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct AttentionPrefillProblem {
  std::int64_t batch = 1;
  std::int64_t q_heads = 1;
  std::int64_t kv_heads = 1;  // divides q_heads; q head h reads KV head h / (q_heads / kv_heads)
  std::int64_t q_len = 1;
  std::int64_t kv_len = 1;
  std::int64_t head_dim = 64;  // of Q, K and V
  bool causal = false;         // bottom-right aligned: query i sees keys j <= i + kv_len - q_len
  Dtype dtype = Dtype::f16;    // of Q, K, V and O
};

// Dense, last index fastest. A query that sees no key has output 0 and log-sum-exp -infinity.
struct AttentionPrefillTensors {
  const void* q = nullptr;  // [batch, q_len, q_heads, head_dim]    dtype
  const void* k = nullptr;  // [batch, kv_len, kv_heads, head_dim]  dtype
  const void* v = nullptr;  // [batch, kv_len, kv_heads, head_dim]  dtype
  void* o = nullptr;        // [batch, q_len, q_heads, head_dim]    dtype
  float* lse = nullptr;     // [batch, q_heads, q_len]              natural logarithm
};

struct AttentionPrefill {
  static constexpr std::string_view kName = "attention_prefill";
  using Problem = AttentionPrefillProblem;
  using Tensors = AttentionPrefillTensors;
};

}  // namespace inferometer
