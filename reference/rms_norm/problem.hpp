// rms_norm: each row divided by its root mean square, times the gains, with `residual` behind the addition to the
// residual stream that Llama and its kin do between two layers. For every row r:
//
//   H'_r = H_r + X_r, added in f32, rounded to dtype    (residual; else X_r itself is normed)
//   Y_r  = H'_r / sqrt(mean(H'_r^2) + eps) * W
//
// Zhang and Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019, eq. 4; eps as in Llama's code.
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct RmsNormProblem {
  std::int64_t rows = 1;       // tokens, or heads of tokens where each head is normed
  std::int64_t hidden = 4096;  // elements of a row
  bool residual = false;
  double eps = 1e-5;
  Dtype dtype = Dtype::f16;  // of all tensors
};

// Dense, last index fastest. Engines add to H in place; here H' has its own memory, so that a launch can be repeated.
struct RmsNormTensors {
  const void* x = nullptr;  // [rows, hidden]
  const void* w = nullptr;  // [hidden]
  const void* h = nullptr;  // [rows, hidden], residual; else null
  void* h_sum = nullptr;    // H', as h
  void* y = nullptr;        // [rows, hidden]
};

struct RmsNorm {
  static constexpr std::string_view kName = "rms_norm";
  using Problem = RmsNormProblem;
  using Tensors = RmsNormTensors;
};

}  // namespace inferometer
