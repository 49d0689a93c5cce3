// What quantisers want to know of the inputs of a layer, summed while activations stream by.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/weight_quantization/float_matrix.hpp"

namespace inferometer {

struct Calibration {
  std::int64_t k = 0;                // input features
  std::int64_t tokens = 0;           // that were seen
  std::vector<double> hessian = {};  // [k, k] mean of x x^T: half the second derivative of the squared output error
  std::vector<double> mean_magnitude = {};  // [k]    mean of |x|
};

// Sums in double precision. The same tokens in the same order give the same bits, however they are cut into calls and
// whatever the number of threads. Holds 8 k^2 bytes and 256 tokens.
class CalibrationSums {
 public:
  explicit CalibrationSums(std::int64_t k);

  // activations [tokens, k]. Throws QuantizationError for another k and for values that are not finite, by token (the
  // first one ever is 0) and input.
  void add(const FloatMatrix& activations, int threads);

  // The means over all tokens so far; all zero without any. Gives the sums away: once, at the end.
  Calibration finish(int threads);

 private:
  void add_pending(int threads);

  std::int64_t k_ = 0;
  std::int64_t tokens_ = 0;
  std::int64_t pending_tokens_ = 0;
  std::vector<double> pending_;  // [256, k]
  std::vector<double> sums_;     // [k, k], tiles on and below the diagonal
  std::vector<double> magnitudes_;
};

Calibration calibrate(const FloatMatrix& activations, int threads);

}  // namespace inferometer
