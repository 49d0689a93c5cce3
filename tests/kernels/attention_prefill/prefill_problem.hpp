// What the tests of the CUDA prefill variants share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/operator/fields.hpp"
#include "harness/operator/tensor.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {

inline const std::vector<std::string> kPrefillVariants = {"cuda.flash_sm80", "cuda.materialized"};

inline Fields prefill_fields(const AttentionPrefillProblem& p) {
  return {{"batch", p.batch},       {"q_heads", p.q_heads},
          {"kv_heads", p.kv_heads}, {"q_len", p.q_len},
          {"kv_len", p.kv_len},     {"head_dim", p.head_dim},
          {"causal", p.causal},     {"dtype", std::string(dtype_name(p.dtype))}};
}

inline VariantRun run_prefill(const std::string& variant, const AttentionPrefillProblem& p, std::uint64_t seed = 1,
                              const EditTensors& edit = {}) {
  return run_variant("attention_prefill", variant, prefill_fields(p), seed, edit);
}

// Runs and judges every variant; on failure prints variant, problem, seed and what the judge found.
inline void check_prefill(const AttentionPrefillProblem& p, std::uint64_t seed = 1, const EditTensors& edit = {}) {
  for (const std::string& variant : kPrefillVariants) {
    const VariantRun run = run_prefill(variant, p, seed, edit);
    INFO(variant << " " << to_string(prefill_fields(p)) << " seed=" << seed << ": " << run.unsupported
                 << run.check.reason);
    CHECK(run.check.passed);
  }
}

// Replaces the values of the tensor called `name`.
inline void set_source(std::vector<TensorSpec>& specs, const std::string& name,
                       const std::function<float(std::int64_t)>& value) {
  for (TensorSpec& spec : specs)
    if (spec.name == name) spec.source = value;
}

}  // namespace inferometer::test
