// The judge of rms_norm: its equations in f64 for a sample of rows.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/rms_norm/problem.hpp"

namespace inferometer {

// Whole rows of y and, with residual, of h_sum; the first and the last row are among them.
std::vector<ExpectedSpan> expect_rms_norm(const RmsNormProblem& problem, const Inputs& inputs, std::uint64_t seed,
                                          int threads);

Tolerance rms_norm_tolerance(const RmsNormProblem& problem, std::string_view tensor);

}  // namespace inferometer
