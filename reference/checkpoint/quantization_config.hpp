// What loaders read to know how a checkpoint is quantised: quantization_config in config.json, and the files of their
// own that GPTQ and AWQ tools wrote before that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/checkpoint/weight_format.hpp"

namespace inferometer {

struct QuantizationConfig {
  const WeightFormat* format = nullptr;
  QuantizationSettings settings;
  bool act_order = false;              // of inputs: GPTQ's desc_act
  std::vector<std::string> kept = {};  // linear layers that keep their weights as they were, lm_head among them
};

// A file of the model's folder.
struct TextFile {
  std::string name;
  std::string text;
};

// config.json (`model_config`: the text of the model's own, empty if it has none) and what else the format's loaders
// look for. Throws ConfigError when the model's config is no JSON object, or says that it is quantised already.
std::vector<TextFile> quantization_config_files(const QuantizationConfig& config, const std::string& model_config,
                                                const std::string& config_path);

// From config.json of a folder or, without it, quantize_config.json or quant_config.json; none: nothing says that the
// model is quantised. Throws ConfigError for what cannot be read here: another method, other bits, mixed schemes.
std::optional<QuantizationConfig> read_quantization_config(const std::string& folder);

}  // namespace inferometer
