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

}  // namespace inferometer
