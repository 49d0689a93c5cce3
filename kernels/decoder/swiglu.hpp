// silu(gate) * up, between the two halves of the MLP, where the product in front does not end in it.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "harness/operator/variant.hpp"

namespace inferometer::decoder {

// to [tokens, n] from x [tokens, 2 n], whose columns come as 8 of gate and 8 of up in turns
// (kernels/matmul/product_ends.hpp); n is a multiple of 8.
void launch_swiglu(const __half* x, __half* to, std::int64_t tokens, std::int64_t n, Stream stream);

}  // namespace inferometer::decoder
