// What the tests of the CUDA matmul variants share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/operator/fields.hpp"
#include "harness/operator/tensor.hpp"
#include "reference/matmul/problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {

inline const std::vector<std::string> kMatmulVariants =
    without_cublas_under_racecheck({"cublas.f16", "cuda.f16_sm80", "cuda.f16_sm90"});

inline Fields matmul_fields(const MatmulProblem& p) {
  return {{"m", p.m},
          {"n", p.n},
          {"k", p.k},
          {"w_transposed", p.w_transposed},
          {"dtype", std::string(dtype_name(p.dtype))}};
}

inline VariantRun run_matmul(const std::string& variant, const MatmulProblem& p, std::uint64_t seed = 1,
                             const EditTensors& edit = {}) {
  return run_variant("matmul", variant, matmul_fields(p), seed, edit);
}

// Runs and judges every variant; on failure prints variant, problem, seed and what the judge found.
inline void check_matmul(const MatmulProblem& p, std::uint64_t seed = 1) {
  for (const std::string& variant : kMatmulVariants) {
    const VariantRun run = run_matmul(variant, p, seed);
    INFO(variant << " " << to_string(matmul_fields(p)) << " seed=" << seed << ": " << run.unsupported
                 << run.check.reason);
    CHECK(run.check.passed);
  }
}

// X's and W's elements as functions of their index.
inline EditTensors with_values(const std::function<float(std::int64_t)>& x,
                               const std::function<float(std::int64_t)>& w) {
  return [x, w](std::vector<TensorSpec>& specs) {
    for (TensorSpec& spec : specs) {
      if (spec.name == "x") spec.source = x;
      if (spec.name == "w") spec.source = w;
    }
  };
}

}  // namespace inferometer::test
