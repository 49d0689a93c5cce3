// One group of layers through a quantiser: from the model's tensors to those of the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/checkpoint/layer_tensors.hpp"
#include "reference/checkpoint/quantization_method.hpp"
#include "reference/checkpoint/weight_format.hpp"
#include "reference/weight_quantization/quantizer.hpp"

namespace inferometer {

// What quantising did to one layer.
struct LayerReport {
  std::string layer;
  std::int64_t n = 0;
  std::int64_t k = 0;
  double weight_rel_error = 0;                  // |dequantised - W| / |W|, AWQ's scales undone
  std::optional<double> output_rel_error = {};  // |X D^T| / |X W^T| on the tokens held out; none without calibration
  std::optional<double> objective = {};         // tr(D H D^T), see quantizer.hpp; of its group for AWQ
  std::optional<double> damping = {};
  double bits_effective = 0;
  double seconds = 0;  // its share of its group's
  std::vector<std::string> warnings = {};
};

struct GroupResult {
  std::vector<StoredTensor> tensors;  // of all layers, and the norm if it was scaled
  std::vector<LayerReport> layers;
};

class LayerQuantizer {
 public:
  // `calibration`: a safetensors file with a tensor [tokens, k] under each layer's name; null: none. Both outlive this.
  LayerQuantizer(const ModelFiles& model, const SafetensorsFile* calibration, QuantizationMethod method,
                 const QuantizationSettings& settings, const WeightFormat& format, int threads);

  LayerShape shape(const std::string& layer) const;
  bool scales_norm(const LayerGroup& group) const;

  // Whether the group can be quantised: shapes that the format holds, finite weights, activations that fit. Reads all
  // of them. Throws QuantizationError with the tensor's name.
  void check(const LayerGroup& group) const;

  // Layer by layer, AWQ all at once. Throws QuantizationError, naming the layer.
  GroupResult quantize(const LayerGroup& group) const;

 private:
  QuantizerGrid grid_for(const LayerShape& shape) const;
  QuantizerResult quantize_one(const FloatMatrix& weights, const Calibration& calibration,
                               const QuantizerGrid& grid) const;
  void quantize_each(const LayerGroup& group, GroupResult& result) const;
  void quantize_together(const LayerGroup& group, GroupResult& result) const;
  void add_layer(const std::string& layer, const QuantizedWeights& quantized, LayerReport report,
                 GroupResult& result) const;

  LayerTensors tensors_;
  QuantizationMethod method_;
  QuantizationSettings settings_;
  const WeightFormat& format_;
  int threads_;
};

}  // namespace inferometer
