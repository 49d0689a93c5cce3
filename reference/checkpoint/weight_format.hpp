// How a quantised linear layer lies in a checkpoint: which tensors stand for its weight, in the layouts that other
// programs write and load. All of them hold unsigned codes and zeros: a symmetric code q is stored as q + 2^(bits-1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/checkpoint/safetensors_file.hpp"
#include "reference/checkpoint/safetensors_writer.hpp"
#include "reference/weight_quantization/quantized_weights.hpp"

namespace inferometer {

// What all layers of a file share.
struct QuantizationSettings {
  std::int64_t bits = 4;
  std::int64_t group_size = 128;  // 0: all inputs of a row
  bool symmetric = true;
};

struct LayerShape {
  std::int64_t n = 0;  // output features
  std::int64_t k = 0;  // input features
  QuantizationSettings settings;
  Dtype scale_dtype = Dtype::f16;

  std::int64_t groups() const { return settings.group_size == 0 ? 1 : k / settings.group_size; }
};

struct StoredTensor {
  TensorPlan plan;
  std::vector<std::byte> data;
};

// Finds a tensor by its whole name; none when there is no such tensor.
using TensorSource = std::function<std::optional<TensorView>(const std::string& name)>;

struct WeightFormat {
  std::string_view name;  // as --format takes it

  // Why a layer cannot be stored so, in a sentence without its name; none: it can.
  std::optional<std::string> (*unsupported)(const LayerShape& shape);

  // The tensors of layer "model.layers.0.mlp.up_proj", in a fixed order. The layer is supported.
  std::vector<TensorPlan> (*plan)(const std::string& layer, const LayerShape& shape);

  // The same with their contents. Throws QuantizationError, naming the layer, for what only the values show: zeros that
  // cannot be written, input scales that nobody has folded into other weights.
  std::vector<StoredTensor> (*store)(const std::string& layer, const QuantizedWeights& weights);

  // Bit for bit what was stored. Throws QuantizationError, naming the tensor, for one that is missing, or has another
  // type, shape or content than its format.
  QuantizedWeights (*load)(const std::string& layer, const QuantizationSettings& settings, const TensorSource& source);
};

// GPTQ as AutoGPTQ writes it (zeros less one), GPTQ with plain zeros, AWQ for its GEMM kernels, compressed-tensors'
// pack-quantized.
extern const WeightFormat kGptqFormat;
extern const WeightFormat kGptqV2Format;
extern const WeightFormat kAwqFormat;
extern const WeightFormat kCompressedTensorsFormat;

const std::vector<const WeightFormat*>& weight_formats();
const WeightFormat* find_weight_format(std::string_view name);  // null: none of that name

}  // namespace inferometer
