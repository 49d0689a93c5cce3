// sm90_matmul_kernel on its way to the GPU, for every type of operands.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"
#include "harness/operator/variant.hpp"
#include "kernels/matmul/sm90_plan.hpp"

namespace inferometer {

// Dense x [m, k] and w [n, k], or of 16 bits [k, n], of `operand`, u8 for int8; y [m, n] of `result`, 16 bits. Rows of
// x and w are multiples of 16 bytes; all three start on 16-byte boundaries.
struct Sm90Product {
  const void* x;
  const void* w;
  void* y;  // null: the kernel's second parameter says where its sums go
  Dtype operand;
  Dtype result;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  bool w_is_kn = false;  // w [k, n]; the kernel is one of Sm90KnTile
  bool gated = false;    // GatedEnd: y [m, n / 2], and n a multiple of 16 (product_ends.hpp)
};

// Once for each plan before it is launched. `kernel`: an instance of sm90_matmul_kernel with the plan's tile.
// Throws CudaError.
void prepare_sm90(const void* kernel, const Sm90Plan& plan);

// Enqueues the product. `output`: the kernel's second parameter. The tensor maps are made here, of the tensors of this
// launch. Throws CudaError.
void launch_sm90(const void* kernel, const Sm90Product& product, const Sm90Plan& plan, void* output, Stream stream);

}  // namespace inferometer
