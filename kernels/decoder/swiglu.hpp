// silu(gate) * up, between the two halves of the MLP.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "harness/operator/variant.hpp"
#include "kernels/decoder/weight_prefetch.hpp"

namespace inferometer::decoder {

// to [tokens, n] = silu(x[.., 0 .. n)) * x[.., n .. 2 n), x [tokens, 2 n]; n is a multiple of 8.
// `next`: of the product that takes it.
void launch_swiglu(const __half* x, __half* to, std::int64_t tokens, std::int64_t n, const WeightPrefetch& next,
                   Stream stream);

}  // namespace inferometer::decoder
