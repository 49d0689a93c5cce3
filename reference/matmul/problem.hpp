// matmul: Y = X W^T, the product of a linear layer, W [n, k] stored as checkpoints store it: one row per output, of
// 16-bit elements or of 8- and 4-bit codes with scales (layout.hpp). One of 16 bits may also be stored transposed.
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct MatmulProblem {
  std::int64_t m = 1;                 // tokens
  std::int64_t n = 1;                 // output features
  std::int64_t k = 1;                 // input features
  std::int64_t bits = 16;             // of a stored weight: 16 (`dtype`), 8 or 4
  std::int64_t activation_bits = 16;  // of X in the product: 16 (`dtype`), or 8 with bits 8 (int8 by token)
  std::int64_t group_size = 0;        // weights of a row that share a scale: 32, 64 or 128; 0: all k of them
  bool symmetric = true;              // without zero points
  bool w_transposed = false;          // W is stored [k, n]; with bits 16 only
  Dtype dtype = Dtype::f16;           // of X, Y and the scales

  bool is_quantized() const { return bits != 16; }
  // Of a row of W; the last one is short where group_size does not divide k.
  std::int64_t groups() const { return group_size == 0 ? 1 : (k + group_size - 1) / group_size; }
};

// Dense, last index fastest.
struct MatmulTensors {
  const void* x = nullptr;       // [m, k]             dtype
  const void* w = nullptr;       // [n, k] or [k, n]   dtype; bits 8: u8 codes; bits 4: [n, k / 2] u8, two codes each
  const void* scales = nullptr;  // [n, groups]        dtype; null with bits 16
  const std::uint8_t* zeros = nullptr;  // [n, groups]        bits 8; [n, (groups + 1) / 2] bits 4; null if symmetric
  void* y = nullptr;  // [m, n]             dtype, accumulated in f32, or exactly with activation_bits 8
};

struct Matmul {
  static constexpr std::string_view kName = "matmul";
  using Problem = MatmulProblem;
  using Tensors = MatmulTensors;
};

}  // namespace inferometer
