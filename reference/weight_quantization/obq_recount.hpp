// GPTQ's judge: Optimal Brain Quantization in its first form. After each column the whole inverse loses a row and a
// column by elimination; no factor, no blocks, no slabs. Frantar and Alistarh, NeurIPS 2022, with a fixed order.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/weight_quantization/calibration.hpp"
#include "reference/weight_quantization/quantizer.hpp"

namespace inferometer {

// Codes [n, k] of the columns in their given order, grids from updated weights. Every input is live. k^3 operations on
// one thread.
std::vector<std::int16_t> recount_by_obq(const FloatMatrix& weights, const Calibration& calibration,
                                         const QuantizerGrid& grid, double damping);

}  // namespace inferometer
