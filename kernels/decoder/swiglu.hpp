// silu(gate) * up, between the two halves of the MLP.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "harness/operator/variant.hpp"

namespace inferometer::decoder {

// to [tokens, n] = silu(x[.., 0 .. n)) * x[.., n .. 2 n), x [tokens, 2 n]; n is a multiple of 8.
void launch_swiglu(const __half* x, __half* to, std::int64_t tokens, std::int64_t n, Stream stream);

}  // namespace inferometer::decoder
