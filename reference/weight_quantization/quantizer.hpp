// What all quantisers of a weight matrix take and give. Each has a header of its own: rounding.hpp, gptq.hpp, awq.hpp.
#pragma once

#include <chrono>
#include <optional>

#include "reference/weight_quantization/calibration.hpp"
#include "reference/weight_quantization/grid_search.hpp"
#include "reference/weight_quantization/quantized_weights.hpp"

namespace inferometer {

// Where codes can lie.
struct QuantizerGrid {
  GridFormat format = {};
  std::int64_t group_size = 128;  // 0: a whole row
  GridChoice choice = GridChoice::range;
};

struct QuantizerResult {
  QuantizedWeights weights = {};
  // The squared error of the layer's outputs, summed over outputs, mean over the tokens of calibration:
  // tr(D H D^T), D = dequantised - W. Nothing without calibration.
  std::optional<double> objective = {};
  // GPTQ: what was added to the diagonal of H, as a share of its mean. Nothing where nothing was factorised.
  std::optional<double> damping = {};
  double seconds = 0;
};

// Seconds since it was made.
class QuantizerClock {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// Throws QuantizationError for weights without columns or with values that are not finite, and for a calibration that
// does not fit them or is not finite.
void check_weights(const FloatMatrix& weights);
void check_calibration(const FloatMatrix& weights, const Calibration& calibration);

}  // namespace inferometer
