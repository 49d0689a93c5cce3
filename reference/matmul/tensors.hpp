// Inputs and outputs of a matmul.
#pragma once

#include <span>
#include <vector>

#include "harness/operator/tensor.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {

// x, w, scales (bits 8 and 4), zeros (asymmetric), y. 16-bit weights are normal; others are synthetic weights
// (weights.hpp) rounded to nearest, so that codes are distributed as a model's are.
std::vector<TensorSpec> matmul_tensors(const MatmulProblem& p);

MatmulTensors bind_matmul(const MatmulProblem& p, std::span<void* const> pointers);

}  // namespace inferometer
