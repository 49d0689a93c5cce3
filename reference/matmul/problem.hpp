// matmul: Y = X W^T, the product of a linear layer, W stored as checkpoints store it: one row per output.
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct MatmulProblem {
  std::int64_t m = 1;        // tokens
  std::int64_t n = 1;        // output features
  std::int64_t k = 1;        // input features
  std::int64_t bits = 16;    // of a stored weight; 16: W holds `dtype`
  Dtype dtype = Dtype::f16;  // of X and Y
};

// Dense, last index fastest.
struct MatmulTensors {
  const void* x = nullptr;  // [m, k]  dtype
  const void* w = nullptr;  // [n, k]  dtype
  void* y = nullptr;        // [m, n]  dtype, accumulated in f32
};

struct Matmul {
  static constexpr std::string_view kName = "matmul";
  using Problem = MatmulProblem;
  using Tensors = MatmulTensors;
};

}  // namespace inferometer
