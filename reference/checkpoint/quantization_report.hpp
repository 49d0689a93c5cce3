// What a quantisation of a model says of itself, as JSON: docs/quantize.md explains each field to users.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/results/json.hpp"
#include "reference/checkpoint/layer_quantizer.hpp"

namespace inferometer {

Json to_json(const LayerReport& layer);

// Beside the reports of layers.
struct ModelFigures {
  QuantizationMethod method = QuantizationMethod::rtn;
  std::string format;
  QuantizationSettings settings;
  std::uint64_t bytes_before = 0;  // of all tensors
  std::uint64_t bytes_after = 0;
  double seconds = 0;
  int threads = 1;
  std::vector<std::string> kept_layers;  // linear layers that stayed as they were
};

Json quantization_report(const ModelFigures& figures, const std::vector<Json>& layer_reports);

}  // namespace inferometer
