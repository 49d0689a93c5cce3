// AWQ's second search: how much of a group's range to keep.
#pragma once

#include <vector>

#include "reference/weight_quantization/calibration.hpp"
#include "reference/weight_quantization/quantized_weights.hpp"

namespace inferometer {

// For each row and group of `scaled` = W diag(scales): of 1.00, 0.95, ..., 0.50 of its range the part with the least
// d H_gg d^T, d the group's errors and H_gg the group's own part of H, as inputs divided by `scales` have it. The grid
// that `quantized` has stays unless another is better; codes follow.
void clip_groups(const FloatMatrix& scaled, const std::vector<float>& scales, const Calibration& calibration,
                 int threads, QuantizedWeights& quantized);

}  // namespace inferometer
