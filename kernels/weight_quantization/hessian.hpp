// What GPTQ wants to know of a layer's inputs, from its activations on the device.
#pragma once

#include "harness/operator/variant.hpp"
#include "kernels/weight_quantization/gptq_workspace.hpp"

namespace inferometer {

// memory.h: upper triangle of H = mean x x^T, in double precision, over activations x [tokens, k].
void launch_hessian(const WeightQuantizationProblem& p, const float* x, const GptqWorkspace& memory, Stream stream);

// Adds `damping` times the mean of the diagonal over live inputs to the diagonal of H; that of an input that is always
// 0 becomes 1: it moves nothing and is moved by nothing. Writes memory.diagonal, memory.live and the status, whose
// `failed` becomes 0. Where no input is live all count as such, since nothing can be known of any.
void launch_damping(const WeightQuantizationProblem& p, double damping, const GptqWorkspace& memory, Stream stream);

}  // namespace inferometer
