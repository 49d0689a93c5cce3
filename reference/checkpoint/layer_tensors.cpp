#include "reference/checkpoint/layer_tensors.hpp"

#include <algorithm>

#include "harness/operator/nearest_word.hpp"
#include "reference/checkpoint/tensor_values.hpp"
#include "reference/weight_quantization/quantized_weights.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kHeldOutShare = 8;  // an eighth

std::int64_t held_out_tokens(std::int64_t tokens) { return std::max<std::int64_t>(1, tokens / kHeldOutShare); }

}  // namespace

FloatMatrix LayerInputs::calibrating() const {
  return {.data = values.data(), .rows = tokens - held_out_tokens(tokens), .columns = k};
}

FloatMatrix LayerInputs::held_out() const {
  const std::int64_t count = held_out_tokens(tokens);
  return {.data = values.data() + (tokens - count) * k, .rows = count, .columns = k};
}

TensorView LayerTensors::weight(const std::string& layer) const { return model_.tensor(layer + ".weight"); }

std::vector<float> LayerTensors::weights(const std::string& layer) const {
  const TensorView tensor = weight(layer);
  std::vector<float> values = float_values(tensor, 0, tensor.shape[0] * tensor.shape[1]);
  model_.release(tensor);
  return values;
}

TensorView LayerTensors::norm(const LayerGroup& group) const { return model_.tensor(group.norm); }

const TensorEntry* LayerTensors::activations_entry(const LayerGroup& group, const std::string& layer) const {
  if (const TensorEntry* const own = calibration_->find(layer)) return own;
  for (const std::string& other : group.layers)
    if (const TensorEntry* const shared = calibration_->find(other)) return shared;
  return nullptr;
}

LayerInputs LayerTensors::activations(const TensorEntry& entry) const {
  const TensorView tensor = calibration_->view(entry);
  LayerInputs inputs{.values = float_values(tensor, 0, tensor.shape[0] * tensor.shape[1]),
                     .tokens = static_cast<std::int64_t>(tensor.shape[0]),
                     .k = static_cast<std::int64_t>(tensor.shape[1])};
  calibration_->release(tensor);
  return inputs;
}

void LayerTensors::check_weights(const std::string& layer) const {
  const TensorView tensor = weight(layer);
  const std::vector<float> values = weights(layer);
  require_finite(std::string(tensor.name), {.data = values.data(),
                                            .rows = static_cast<std::int64_t>(tensor.shape[0]),
                                            .columns = static_cast<std::int64_t>(tensor.shape[1])});
}

void LayerTensors::check_activations(const LayerGroup& group, const std::string& layer) const {
  const TensorEntry* const entry = activations_entry(group, layer);
  if (entry == nullptr)
    throw QuantizationError(calibration_->path() + ": has no tensor " + in_quotes(layer) +
                            " with the activations of that layer");
  const TensorView tensor = calibration_->view(*entry);
  const std::uint64_t k = weight(layer).shape[1];
  if (!is_plain_float(tensor.type) || tensor.shape.size() != 2 || tensor.shape[1] != k || tensor.shape[0] < 2)
    throw QuantizationError(calibration_->path() + ": tensor " + in_quotes(entry->name) + " must be [tokens, " +
                            std::to_string(k) + "] of F16, BF16 or F32, with two tokens or more");
  if (entry->name != layer) return;  // a neighbour's, looked at with it
  const LayerInputs inputs = activations(*entry);
  require_finite(entry->name, {.data = inputs.values.data(), .rows = inputs.tokens, .columns = inputs.k});
}

void LayerTensors::check_norm(const LayerGroup& group) const {
  const TensorView tensor = norm(group);
  const std::uint64_t k = weight(group.layers.front()).shape[1];
  if (!is_plain_float(tensor.type) || tensor.shape.size() != 1 || tensor.shape[0] != k)
    throw QuantizationError("tensor " + in_quotes(group.norm) + " must be [" + std::to_string(k) +
                            "] of F16, BF16 or F32: the layers after it have as many inputs");
}

}  // namespace inferometer
