// What every CUDA variant of attention_prefill asks of a problem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "harness/operator/dtype.hpp"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {

// Positions are int in the kernels: a sum of two lengths must fit.
inline constexpr std::int64_t kMaxPrefillLength = std::int64_t{1} << 30;

// A sentence when the problem's dtype or lengths are beyond these kernels.
inline std::optional<std::string> prefill_limits(const AttentionPrefillProblem& p) {
  if (p.dtype != Dtype::f16 && p.dtype != Dtype::bf16)
    return "dtype must be f16 or bf16, got " + std::string(dtype_name(p.dtype));
  for (const auto& [name, length] : {std::pair{"q_len", p.q_len}, std::pair{"kv_len", p.kv_len}})
    if (length > kMaxPrefillLength)
      return std::string(name) + " must be at most " + std::to_string(kMaxPrefillLength) + ", got " +
             std::to_string(length);
  return std::nullopt;
}

// A sentence when sequences have lengths of their own, or no keys, or keys in blocks.
inline std::optional<std::string> equal_contiguous_only(const AttentionPrefillProblem& p) {
  if (p.ragged()) return "q_lens and kv_lens must be empty, got " + std::to_string(p.q_lens.size()) + " lengths";
  if (p.kv_len == 0) return "kv_len must be at least 1, got 0";
  if (p.paged()) return "block_size must be 0, got " + std::to_string(p.block_size);
  return std::nullopt;
}

// A sentence when the problem is more than equal sequences with contiguous keys and values of one width, all of them
// visible or causal.
inline std::optional<std::string> plain_prefill_only(const AttentionPrefillProblem& p) {
  if (auto sentence = equal_contiguous_only(p)) return sentence;
  if (p.v_dim() != p.head_dim)
    return "v_head_dim must be head_dim, " + std::to_string(p.head_dim) + ", got " + std::to_string(p.v_dim());
  const std::int64_t row = p.kv_heads * p.head_dim;
  for (const auto& [name, stride] : {std::pair{"k_row_stride", p.k_stride()}, std::pair{"v_row_stride", p.v_stride()}})
    if (stride != row)
      return std::string(name) + " must be kv_heads * head_dim, " + std::to_string(row) + ", got " +
             std::to_string(stride);
  if (p.window_left >= 0) return "window_left must be -1, got " + std::to_string(p.window_left);
  if (p.soft_cap > 0) return "soft_cap must be 0, got " + std::to_string(p.soft_cap);
  return std::nullopt;
}

}  // namespace inferometer
