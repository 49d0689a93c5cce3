// The weights of a quantised matmul: synthetic ones in full precision, what rounding to nearest makes of them, and what
// that is worth.
//
// Synthetic weights are near to those of language models in what matters to a quantiser: standard deviation 0.02,
// heavy tails (each 256th weight, where chance has it, is four times larger: a kurtosis of 5.3) and outlier channels
// (each 128th input feature three times larger). They are no model's weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/judge/tolerance.hpp"
#include "harness/operator/tensor.hpp"
#include "reference/matmul/problem.hpp"
#include "reference/weight_quantization/rtn.hpp"

namespace inferometer {

constexpr std::uint64_t kWeightsPerOutlier = 256;
constexpr float kOutlierFactor = 4;
constexpr std::uint64_t kChannelsPerOutlier = 128;
constexpr float kChannelFactor = 3;

constexpr HeavyTails kSyntheticTails = {.outlier_share = 1.0 / kWeightsPerOutlier,
                                        .outlier_factor = kOutlierFactor,
                                        .column_share = 1.0 / kChannelsPerOutlier,
                                        .column_factor = kChannelFactor};

// Row j of W before it is quantised: `k` elements, a pure function of seed, row and shape.
void fill_synthetic_row(std::uint64_t seed, std::int64_t row, std::span<float> weights);

struct QuantizedRow {
  std::vector<std::int32_t> codes;  // [k]
  std::vector<Grid> grids;          // [groups]
};

// That row, rounded to nearest.
QuantizedRow quantize_synthetic_row(const MatmulProblem& p, std::uint64_t seed, std::int64_t row);

// Row `row` of W as the tensors of `inputs` hold it, in double precision, exactly; codes of bits 8 and 4 dequantised.
// Not of a W that is w_transposed.
std::vector<double> read_weights(const MatmulProblem& p, const Inputs& inputs, std::int64_t row);

}  // namespace inferometer
