#include "reference/weight_quantization/float_matrix.hpp"

#include <cmath>

#include "reference/weight_quantization/quantized_weights.hpp"

namespace inferometer {

void require_finite(const std::string& name, const FloatMatrix& matrix, std::int64_t first_row) {
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const std::span<const float> row = matrix.row(i);
    // 0 * x is NaN for what is not finite, and NaN stays in a sum: one test a row.
    float zeros = 0;
    for (const float value : row) zeros += 0.0F * value;
    if (zeros == 0) continue;
    for (std::size_t j = 0; j < row.size(); ++j)
      if (!std::isfinite(row[j]))
        throw QuantizationError(name + "[" + std::to_string(first_row + i) + "][" + std::to_string(j) +
                                "] must be finite, got " + std::to_string(row[j]));
  }
}

}  // namespace inferometer
