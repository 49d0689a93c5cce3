// Rounding to nearest: f16 weights to the codes and scales that matmul takes (reference/matmul/problem.hpp), by the
// rule of reference/decoder/problem.hpp.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "harness/operator/variant.hpp"

namespace inferometer::decoder {

// w [n, k]; codes [n, k] int8 or [n, k / 2] of 4 bits; scales [n, ceil(k / kWeightGroup)]. k is a multiple of 8.
void launch_quantize_weights(const __half* w, std::int64_t n, std::int64_t k, std::int64_t bits, std::uint8_t* codes,
                             __half* scales, Stream stream);

}  // namespace inferometer::decoder
