// What quantising changed, in double precision.
#pragma once

#include <vector>

#include "reference/weight_quantization/calibration.hpp"
#include "reference/weight_quantization/quantized_weights.hpp"

namespace inferometer {

// D [n, k], row-major: what the codes are worth less the weights.
std::vector<double> weight_errors(const QuantizedWeights& quantized, const FloatMatrix& weights, int threads);

// tr(D H D^T) of rows D [n, k]: mean over the tokens of calibration of the squared output error, summed over outputs.
double output_objective(const std::vector<double>& errors, const Calibration& calibration, int threads);

// |D| / |W|, Frobenius norms. 0 where nothing changed, infinite where there was nothing but zeros and it did.
double weight_rel_error(const QuantizedWeights& quantized, const FloatMatrix& weights, int threads);

// |X D^T| / |X W^T| over activations X [tokens, k], those held out of calibration for an honest figure; likewise.
double output_rel_error(const QuantizedWeights& quantized, const FloatMatrix& weights, const FloatMatrix& activations,
                        int threads);

}  // namespace inferometer
