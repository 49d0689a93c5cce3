// Products of f16 with the ends of product_ends.hpp, by the kernels of cuda.f16_sm90: with the plan of the plain
// product, or, where they have a late norm, the fastest that can. Their problems are f16, not quantised, and such that
// cuda.f16_sm90 could do them.
#pragma once

#include <memory>

#include "harness/operator/variant.hpp"
#include "kernels/matmul/product_ends.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {

// Whether a product can end in a residual, and a gated one take a norm late: up to 32 tokens.
bool f16_has_late_norm(const MatmulProblem& p);

// y [m, n / 2]. Throws std::invalid_argument where n is no multiple of 16, and for a norm without f16_has_late_norm.
// `state`: from prepare_gated_f16.
std::shared_ptr<void> prepare_gated_f16(const MatmulProblem& p);
void run_gated_f16(const MatmulProblem& p, const MatmulTensors& t, const GatedEnd& end, const Launch& launch);

// For problems with f16_has_late_norm and n that are multiples of 8: std::invalid_argument otherwise. `end.parts`:
// f16_residual_parts.
int f16_residual_parts(const MatmulProblem& p);
std::shared_ptr<void> prepare_residual_f16(const MatmulProblem& p);
void run_residual_f16(const MatmulProblem& p, const MatmulTensors& t, const ResidualEnd& end, const Launch& launch);

}  // namespace inferometer
