// What the tests of cuda.w4a16 and cuda.w8a16 share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/matmul/problem.hpp"
#include "tests/reference/matmul/quantized_problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {

inline std::string weight_only_variant(const MatmulProblem& p) { return p.bits == 4 ? "cuda.w4a16" : "cuda.w8a16"; }

inline VariantRun run_weight_only(const MatmulProblem& p, std::uint64_t seed = 1, const EditTensors& edit = {}) {
  return run_variant("matmul", weight_only_variant(p), quantized_fields(p), seed, edit);
}

// Runs and judges; on failure prints problem, seed and what the judge found.
inline void check_weight_only(const MatmulProblem& p, std::uint64_t seed = 1) {
  const VariantRun run = run_weight_only(p, seed);
  INFO(to_string(quantized_fields(p)) << " seed=" << seed << ": " << run.unsupported << run.check.reason);
  CHECK(run.check.passed);
}

// Every format of weights with activations of 16 bits; sizes are 1.
inline std::vector<MatmulProblem> weight_only_formats() {
  std::vector<MatmulProblem> formats;
  for (const MatmulProblem& format : weight_formats())
    if (format.activation_bits == 16) formats.push_back(format);
  return formats;
}

}  // namespace inferometer::test
