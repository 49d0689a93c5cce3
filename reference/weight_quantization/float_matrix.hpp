// Dense matrices of floats as callers hold them: weights [outputs, inputs] and activations [tokens, inputs].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace inferometer {

// A view: row i is at data + i * columns.
struct FloatMatrix {
  const float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::span<const float> row(std::int64_t i) const { return {data + i * columns, static_cast<std::size_t>(columns)}; }
};

// Throws QuantizationError with the first place that is not finite: "weights[3][17] must be finite, got nan".
// `first_row` is added to the row that it names, for matrices that are part of a longer one.
void require_finite(const std::string& name, const FloatMatrix& matrix, std::int64_t first_row = 0);

}  // namespace inferometer
