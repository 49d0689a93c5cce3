// Where the layer of a weight_quantization problem comes from: its weights and the activations that enter it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reference/weight_quantization/float_matrix.hpp"
#include "reference/weight_quantization/problem.hpp"

namespace inferometer {

// Thread-safe, and the same numbers every time.
class LayerSource {
 public:
  virtual ~LayerSource() = default;
  virtual void weights(std::int64_t output, std::span<float> row) const = 0;     // row [k] of W
  virtual void activations(std::int64_t token, std::span<float> row) const = 0;  // x [k], token >= 0
};

// Either a model: a safetensors file or a folder with its files (file_layer.hpp). Or a synthetic source. Those resemble
// layers of language models in what matters to a quantiser, and are no model's.
//   synthetic               weights: standard deviation 0.02, heavy tails, outlier channels (matmul/weights.hpp).
//                           activations: x_i = c_i (sqrt(1 - correlation) noise_i + sqrt(correlation) shared_i), where
//                           shared_i mixes 16 factors of the token with random signs and weights, and c_i is 1, or 10
//                           in each 64th input, where chance has it
//   synthetic_uncorrelated  the same weights; token t has a single input, t mod k, that is not 0. So H is exactly
//                           diagonal, and no method can do better by moving errors from one input to another
std::vector<std::string> synthetic_source_names();
bool is_synthetic_source(const std::string& source);

// Throws CheckpointError for files (file_layer.hpp).
std::shared_ptr<const LayerSource> open_layer(const WeightQuantizationProblem& problem);

// A matrix that owns its numbers.
struct OwnedMatrix {
  std::vector<float> values;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  FloatMatrix view() const { return {values.data(), rows, columns}; }
};

// Of the problem's layer: W, the tokens of calibration, and those held out.
OwnedMatrix layer_weights(const WeightQuantizationProblem& problem, int threads);
OwnedMatrix calibration_activations(const WeightQuantizationProblem& problem, int threads);
OwnedMatrix held_out_activations(const WeightQuantizationProblem& problem, int threads);

}  // namespace inferometer
