#include "reference/weight_quantization/quantizer.hpp"

#include <cmath>
#include <string>

namespace inferometer {
namespace {

void require_size(const std::string& name, std::size_t came, std::int64_t expected) {
  if (came != static_cast<std::size_t>(expected))
    throw QuantizationError(name + " must hold " + std::to_string(expected) + " numbers, got " + std::to_string(came));
}

}  // namespace

void check_weights(const FloatMatrix& weights) {
  if (weights.columns < 1)
    throw QuantizationError("weights must have at least one column, got " + std::to_string(weights.columns));
  require_finite("weights", weights);
}

void check_calibration(const FloatMatrix& weights, const Calibration& calibration) {
  const std::int64_t k = calibration.k;
  if (k != weights.columns)
    throw QuantizationError("the calibration must be of the " + std::to_string(weights.columns) +
                            " inputs of the weights, got " + std::to_string(k));
  require_size("hessian", calibration.hessian.size(), k * k);
  require_size("mean_magnitude", calibration.mean_magnitude.size(), k);
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = 0; j < k; ++j) {
      const double element = calibration.hessian[static_cast<std::size_t>(i * k + j)];
      if (!std::isfinite(element) || (i == j && element < 0))
        throw QuantizationError("hessian[" + std::to_string(i) + "][" + std::to_string(j) + "] must be finite" +
                                (i == j ? " and not negative" : "") + ", got " + std::to_string(element));
    }
  }
}

}  // namespace inferometer
