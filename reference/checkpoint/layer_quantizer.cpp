#include "reference/checkpoint/layer_quantizer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/operator/nearest_word.hpp"
#include "harness/results/terminal.hpp"
#include "reference/checkpoint/tensor_values.hpp"
#include "reference/weight_quantization/awq.hpp"
#include "reference/weight_quantization/errors.hpp"
#include "reference/weight_quantization/gptq.hpp"
#include "reference/weight_quantization/rounding.hpp"

namespace inferometer {
namespace {

FloatMatrix matrix(const std::vector<float>& values, const LayerShape& shape) {
  return {.data = values.data(), .rows = shape.n, .columns = shape.k};
}

// Rows first, ..., first + count - 1 as a layer of its own.
QuantizedWeights rows_of(const QuantizedWeights& all, std::int64_t first, std::int64_t count) {
  QuantizedWeights part = make_quantized_weights(count, all.k, all.format, all.group_size);
  const auto copy = [&](const auto& from, auto& to, std::int64_t width) {
    std::copy_n(from.begin() + first * width, count * width, to.begin());
  };
  copy(all.codes, part.codes, all.k);
  copy(all.scales, part.scales, all.groups());
  if (!all.format.symmetric) copy(all.zeros, part.zeros, all.groups());
  return part;
}

// norm / scales, in the type of the norm.
StoredTensor divided(const TensorView& norm, const std::vector<float>& scales) {
  std::vector<float> values = float_values(norm, 0, scales.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] /= scales[i];
  StoredTensor stored{.plan = {std::string(norm.name), norm.type, {norm.shape.begin(), norm.shape.end()}},
                      .data = std::vector<std::byte>(norm.data.size())};
  const auto convert = [&](auto bits_of) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto bits = bits_of(values[i]);
      std::memcpy(stored.data.data() + i * sizeof(bits), &bits, sizeof(bits));
    }
  };
  if (norm.type == TensorType::f16) {
    convert([](float value) { return f16_bits(value); });
  } else if (norm.type == TensorType::bf16) {
    convert([](float value) { return bf16_bits(value); });
  } else {
    convert([](float value) { return value; });
  }
  return stored;
}

}  // namespace

LayerQuantizer::LayerQuantizer(const ModelFiles& model, const SafetensorsFile* calibration, QuantizationMethod method,
                               const QuantizationSettings& settings, const WeightFormat& format, int threads)
    : tensors_(model, calibration), method_(method), settings_(settings), format_(format), threads_(threads) {}

LayerShape LayerQuantizer::shape(const std::string& layer) const {
  const TensorView weight = tensors_.weight(layer);
  // Loaders keep compressed-tensors' scales in the type of the model, and would round others; the kernels for the other
  // formats take F16.
  const bool bf16 = &format_ == &kCompressedTensorsFormat && weight.type == TensorType::bf16;
  return {.n = static_cast<std::int64_t>(weight.shape[0]),
          .k = static_cast<std::int64_t>(weight.shape[1]),
          .settings = settings_,
          .scale_dtype = bf16 ? Dtype::bf16 : Dtype::f16};
}

bool LayerQuantizer::scales_norm(const LayerGroup& group) const {
  return method_ == QuantizationMethod::awq && !group.norm.empty();
}

void LayerQuantizer::check(const LayerGroup& group) const {
  for (const std::string& layer : group.layers) {
    if (const auto sentence = format_.unsupported(shape(layer)))
      throw QuantizationError("tensor " + in_quotes(layer + ".weight") + " cannot be stored as " +
                              std::string(format_.name) + ": " + *sentence);
    tensors_.check_weights(layer);
    if (tensors_.has_activations()) tensors_.check_activations(group, layer);
  }
  if (scales_norm(group)) tensors_.check_norm(group);
}

GroupResult LayerQuantizer::quantize(const LayerGroup& group) const {
  GroupResult result;
  try {
    if (scales_norm(group)) {
      quantize_together(group, result);
    } else {
      quantize_each(group, result);
    }
  } catch (const QuantizationError& error) {
    throw QuantizationError(group.layers.front() + (group.layers.size() > 1 ? " and those beside it: " : ": ") +
                            error.what());
  }
  return result;
}

QuantizerGrid LayerQuantizer::grid_for(const LayerShape& shape) const {
  return {.format = {.bits = settings_.bits, .symmetric = settings_.symmetric, .scale_dtype = shape.scale_dtype},
          .group_size = settings_.group_size};
}

QuantizerResult LayerQuantizer::quantize_one(const FloatMatrix& weights, const Calibration& calibration,
                                             const QuantizerGrid& grid) const {
  switch (method_) {
    case QuantizationMethod::rtn: return quantize_rounding(weights, grid, threads_);
    // Nothing is known to take 1 / s, so that s = 1 and only clips are looked for.
    case QuantizationMethod::awq: return quantize_awq(weights, calibration, {.grid = grid, .ratios = 1}, threads_);
    case QuantizationMethod::gptq: break;
  }
  QuantizerResult result = quantize_gptq(weights, calibration, {.grid = grid}, threads_);
  if (calibration.tokens < weights.columns)
    result.weights.warnings.push_back("calibrated with " + std::to_string(calibration.tokens) + " tokens for " +
                                      std::to_string(weights.columns) +
                                      " inputs: gptq fits its weights to so few, and may be worse than rtn on others");
  return result;
}

void LayerQuantizer::quantize_each(const LayerGroup& group, GroupResult& result) const {
  LayerInputs inputs;
  const TensorEntry* summed = nullptr;  // the activations that `calibration` is of
  Calibration calibration;
  for (const std::string& layer : group.layers) {
    const LayerShape form = shape(layer);
    const std::vector<float> values = tensors_.weights(layer);
    const FloatMatrix w = matrix(values, form);
    const QuantizerClock clock;
    if (tensors_.has_activations()) {
      const TensorEntry* const entry = tensors_.activations_entry(group, layer);
      if (entry != summed) {
        inputs = tensors_.activations(*entry);
        if (method_ != QuantizationMethod::rtn) calibration = calibrate(inputs.calibrating(), threads_);
        summed = entry;
      }
    }
    QuantizerResult quantized = quantize_one(w, calibration, grid_for(form));
    LayerReport report{.layer = layer, .n = form.n, .k = form.k, .objective = quantized.objective};
    report.damping = quantized.damping;
    report.seconds = clock.seconds();
    report.weight_rel_error = weight_rel_error(quantized.weights, w, threads_);
    if (tensors_.has_activations())
      report.output_rel_error = output_rel_error(quantized.weights, w, inputs.held_out(), threads_);
    if (method_ == QuantizationMethod::gptq) {
      const QuantizedWeights rounded = quantize_rounding(w, grid_for(form), threads_).weights;
      const double error = output_rel_error(rounded, w, inputs.held_out(), threads_);
      if (*report.output_rel_error > error)
        quantized.weights.warnings.push_back(
            "on tokens held out, its outputs err by " + formatted("%.2e", *report.output_rel_error) +
            ", those of rtn by " + formatted("%.2e", error) + ": what gptq learnt from " +
            std::to_string(calibration.tokens) + " tokens is chance; give it more, or take rtn");
    }
    add_layer(layer, quantized.weights, std::move(report), result);
  }
}

// Layers that read one input share one scale an input: together they are one layer with all their outputs.
void LayerQuantizer::quantize_together(const LayerGroup& group, GroupResult& result) const {
  const LayerShape first = shape(group.layers.front());
  std::vector<float> stacked;
  for (const std::string& layer : group.layers) {
    const std::vector<float> values = tensors_.weights(layer);
    stacked.insert(stacked.end(), values.begin(), values.end());
  }
  const std::int64_t rows = static_cast<std::int64_t>(stacked.size()) / first.k;
  const LayerInputs inputs = tensors_.activations(*tensors_.activations_entry(group, group.layers.front()));
  const QuantizerClock clock;
  const Calibration calibration = calibrate(inputs.calibrating(), threads_);
  const QuantizerResult quantized = quantize_awq({.data = stacked.data(), .rows = rows, .columns = first.k},
                                                 calibration, {.grid = grid_for(first)}, threads_);
  const double seconds = clock.seconds();
  const std::vector<float>& scales = quantized.weights.input_scales;
  std::int64_t row = 0;
  for (const std::string& layer : group.layers) {
    const std::int64_t n = shape(layer).n;
    QuantizedWeights part = rows_of(quantized.weights, row, n);
    part.warnings = quantized.weights.warnings;
    part.input_scales = scales;
    const FloatMatrix w{.data = stacked.data() + row * first.k, .rows = n, .columns = first.k};
    LayerReport report{.layer = layer, .n = n, .k = first.k};
    report.weight_rel_error = weight_rel_error(part, w, threads_);
    report.output_rel_error = output_rel_error(part, w, inputs.held_out(), threads_);
    report.objective = quantized.objective;
    report.seconds = seconds * static_cast<double>(n) / static_cast<double>(rows);
    part.input_scales.clear();  // into the norm, below
    add_layer(layer, part, std::move(report), result);
    row += n;
  }
  const std::vector<float> ones(static_cast<std::size_t>(first.k), 1.0F);
  result.tensors.push_back(divided(tensors_.norm(group), scales.empty() ? ones : scales));
}

void LayerQuantizer::add_layer(const std::string& layer, const QuantizedWeights& quantized, LayerReport report,
                               GroupResult& result) const {
  report.bits_effective = quantized.bits_effective();
  report.warnings = quantized.warnings;
  for (StoredTensor& tensor : format_.store(layer, quantized)) result.tensors.push_back(std::move(tensor));
  result.layers.push_back(std::move(report));
}

}  // namespace inferometer
