// Rounding to nearest (RTN) of a weight matrix: no calibration, each weight by itself. The baseline of all others.
#pragma once

#include "reference/weight_quantization/quantizer.hpp"

namespace inferometer {

// weights [n, k]. Rows in parallel; same bits for any number of threads. Throws QuantizationError (quantizer.hpp).
QuantizerResult quantize_rounding(const FloatMatrix& weights, const QuantizerGrid& grid, int threads);

}  // namespace inferometer
