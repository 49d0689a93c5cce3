// X of a matmul to int8, a scale for each token: what reference/matmul/token_codes.hpp states, to the bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "harness/operator/variant.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {

struct QuantizedActivations {
  std::int8_t* codes;  // [m, k]
  float* scales;       // [m], and room for one more where m is odd
};

// k is a multiple of this: rows of X and of codes then start on 16-byte boundaries.
inline constexpr std::int64_t kActivationElems = 16;

// Bytes that the two take, one after the other, and where they lie in such memory, 256-byte aligned.
std::size_t quantized_activation_bytes(const MatmulProblem& p);
QuantizedActivations place_activations(const MatmulProblem& p, std::byte* memory);

// Enqueues it. `x`: [m, k] of p.dtype, f16 or bf16, 16-byte aligned. Throws CudaError.
void launch_quantize_activations(const MatmulProblem& p, const void* x, const QuantizedActivations& to, Stream stream);

}  // namespace inferometer
