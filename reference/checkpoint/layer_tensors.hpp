// What a group of layers is quantised from: weights of a model, activations of a calibration file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/checkpoint/linear_layers.hpp"
#include "reference/weight_quantization/float_matrix.hpp"

namespace inferometer {

// Activations [tokens, k]. The first tokens calibrate, an eighth of them, at least one, measures the error.
struct LayerInputs {
  std::vector<float> values = {};
  std::int64_t tokens = 0;
  std::int64_t k = 0;

  FloatMatrix calibrating() const;
  FloatMatrix held_out() const;
};

class LayerTensors {
 public:
  // `calibration`: a safetensors file with a tensor [tokens, k] under each layer's name; null: none. Both outlive this.
  LayerTensors(const ModelFiles& model, const SafetensorsFile* calibration)
      : model_(model), calibration_(calibration) {}

  bool has_activations() const { return calibration_ != nullptr; }

  TensorView weight(const std::string& layer) const;           // [n, k]
  std::vector<float> weights(const std::string& layer) const;  // its elements
  TensorView norm(const LayerGroup& group) const;

  // A layer's own tensor or, of layers that read the same input, that of the first one that has one. Null: absent.
  const TensorEntry* activations_entry(const LayerGroup& group, const std::string& layer) const;
  LayerInputs activations(const TensorEntry& entry) const;

  // Throw QuantizationError with the tensor's name: weights that are not finite; activations that are absent, of
  // another shape or not finite; a norm that is no vector of k numbers. They read all elements.
  void check_weights(const std::string& layer) const;
  void check_activations(const LayerGroup& group, const std::string& layer) const;
  void check_norm(const LayerGroup& group) const;

 private:
  const ModelFiles& model_;
  const SafetensorsFile* calibration_;
};

}  // namespace inferometer
