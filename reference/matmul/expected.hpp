// What a matmul should give, in double precision, and how far a correct answer may lie from it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {

// Y against the weights as they are stored, dequantised without rounding; with activation_bits 8 of X as
// token_codes.hpp quantises it. All of a small problem; of a large one at least 32 rows of at least 16 segments.
std::vector<ExpectedSpan> expect_matmul(const MatmulProblem& p, const Inputs& inputs, std::uint64_t seed, int threads);

// Row i of X as the product takes it: with activation_bits 8 its codes times its scale, else as it is stored.
std::vector<double> read_token(const MatmulProblem& p, const Inputs& inputs, std::int64_t i);

Tolerance matmul_tolerance(const MatmulProblem& p, std::string_view tensor);

}  // namespace inferometer
