#include "reference/checkpoint/layer_quantizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "harness/operator/nearest_word.hpp"
#include "reference/checkpoint/tensor_values.hpp"
#include "reference/weight_quantization/awq.hpp"
#include "reference/weight_quantization/errors.hpp"
#include "reference/weight_quantization/gptq.hpp"
#include "reference/weight_quantization/rounding.hpp"

namespace inferometer {
namespace {

constexpr std::array<std::pair<QuantizationMethod, std::string_view>, 3> kMethods{
    {{QuantizationMethod::rtn, "rtn"}, {QuantizationMethod::gptq, "gptq"}, {QuantizationMethod::awq, "awq"}}};

constexpr std::int64_t kHeldOutShare = 8;  // an eighth of the tokens measures the error and calibrates nothing

FloatMatrix matrix(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  return {.data = values.data(), .rows = rows, .columns = columns};
}

// The first tokens calibrate, the others measure.
struct Tokens {
  FloatMatrix calibrating;
  FloatMatrix held_out;
};

Tokens split(const LayerInputs& inputs) {
  const std::int64_t held_out = std::max<std::int64_t>(1, inputs.tokens / kHeldOutShare);
  const std::int64_t calibrating = inputs.tokens - held_out;
  return {.calibrating = {.data = inputs.values.data(), .rows = calibrating, .columns = inputs.k},
          .held_out = {.data = inputs.values.data() + calibrating * inputs.k, .rows = held_out, .columns = inputs.k}};
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

std::optional<QuantizationMethod> parse_method(std::string_view name) {
  for (const auto& [method, known] : kMethods)
    if (known == name) return method;
  return std::nullopt;
}

std::string_view method_name(QuantizationMethod method) { return kMethods.at(static_cast<std::size_t>(method)).second; }

LayerQuantizer::LayerQuantizer(const ModelFiles& model, const SafetensorsFile* calibration, QuantizationMethod method,
                               const QuantizationSettings& settings, const WeightFormat& format, int threads)
    : model_(model),
      calibration_(calibration),
      method_(method),
      settings_(settings),
      format_(format),
      threads_(threads) {}

LayerShape LayerQuantizer::shape(const std::string& layer) const {
  const TensorView weight = model_.tensor(layer + ".weight");
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
    const std::string name = layer + ".weight";
    const LayerShape form = shape(layer);
    if (const auto sentence = format_.unsupported(form))
      throw QuantizationError("tensor " + in_quotes(name) + " cannot be stored as " + std::string(format_.name) + ": " +
                              *sentence);
    const std::vector<float> values = weights(layer);
    require_finite(name, matrix(values, form.n, form.k));
    if (calibration_ == nullptr) continue;
    const TensorEntry* const entry = calibration_entry(group, layer);
    if (entry == nullptr)
      throw QuantizationError(calibration_->path() + ": has no tensor " + in_quotes(layer) +
                              " with the activations of that layer");
    const TensorView tensor = calibration_->view(*entry);
    if (!is_plain_float(tensor.type) || tensor.shape.size() != 2 ||
        tensor.shape[1] != static_cast<std::uint64_t>(form.k) || tensor.shape[0] < 2)
      throw QuantizationError(calibration_->path() + ": tensor " + in_quotes(entry->name) + " must be [tokens, " +
                              std::to_string(form.k) + "] of F16, BF16 or F32, with two tokens or more");
    if (entry->name == layer) {
      const LayerInputs inputs = activations(*entry);
      require_finite(entry->name, matrix(inputs.values, inputs.tokens, inputs.k));
    }
  }
  if (!scales_norm(group)) return;
  const TensorView norm = model_.tensor(group.norm);
  const std::int64_t k = shape(group.layers.front()).k;
  if (!is_plain_float(norm.type) || norm.shape.size() != 1 || norm.shape[0] != static_cast<std::uint64_t>(k))
    throw QuantizationError("tensor " + in_quotes(group.norm) + " must be [" + std::to_string(k) +
                            "] of F16, BF16 or F32: the layers after it have as many inputs");
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

void LayerQuantizer::quantize_each(const LayerGroup& group, GroupResult& result) const {
  LayerInputs inputs;
  const TensorEntry* summed = nullptr;  // the activations that `calibration` is of
  Calibration calibration;
  for (const std::string& layer : group.layers) {
    const LayerShape form = shape(layer);
    const std::vector<float> values = weights(layer);
    const FloatMatrix w = matrix(values, form.n, form.k);
    const QuantizerGrid grid{
        .format = {.bits = settings_.bits, .symmetric = settings_.symmetric, .scale_dtype = form.scale_dtype},
        .group_size = settings_.group_size};
    const QuantizerClock clock;
    if (calibration_ != nullptr) {
      const TensorEntry* const entry = calibration_entry(group, layer);
      if (entry != summed) {
        inputs = activations(*entry);
        if (method_ != QuantizationMethod::rtn) calibration = calibrate(split(inputs).calibrating, threads_);
        summed = entry;
      }
    }
    auto quantized = [&]() -> QuantizerResult {
      switch (method_) {
        case QuantizationMethod::rtn: return quantize_rounding(w, grid, threads_);
        case QuantizationMethod::gptq: return quantize_gptq(w, calibration, {.grid = grid}, threads_);
        // Nothing is known to take 1 / s, so that s = 1 and only clips are looked for.
        case QuantizationMethod::awq: return quantize_awq(w, calibration, {.grid = grid, .ratios = 1}, threads_);
      }
      throw std::logic_error("quantize_each: unknown method");
    }();
    if (method_ == QuantizationMethod::gptq && calibration.tokens < form.k)
      quantized.weights.warnings.push_back(
          "calibrated with " + std::to_string(calibration.tokens) + " tokens for " + std::to_string(form.k) +
          " inputs: gptq fits its weights to so few, and may be worse than rtn on others");
    LayerReport report{.layer = layer, .n = form.n, .k = form.k, .objective = quantized.objective};
    report.damping = quantized.damping;
    report.seconds = clock.seconds();
    report.weight_rel_error = weight_rel_error(quantized.weights, w, threads_);
    if (calibration_ != nullptr)
      report.output_rel_error = output_rel_error(quantized.weights, w, split(inputs).held_out, threads_);
    add_layer(layer, quantized.weights, std::move(report), result);
  }
}

// Layers that read one input share one scale an input: together they are one layer with all their outputs.
void LayerQuantizer::quantize_together(const LayerGroup& group, GroupResult& result) const {
  const LayerShape first = shape(group.layers.front());
  std::vector<float> stacked;
  for (const std::string& layer : group.layers) {
    const std::vector<float> values = weights(layer);
    stacked.insert(stacked.end(), values.begin(), values.end());
  }
  const std::int64_t rows = static_cast<std::int64_t>(stacked.size()) / first.k;
  const LayerInputs inputs = activations(*calibration_entry(group, group.layers.front()));
  const QuantizerGrid grid{
      .format = {.bits = settings_.bits, .symmetric = settings_.symmetric, .scale_dtype = first.scale_dtype},
      .group_size = settings_.group_size};
  const QuantizerClock clock;
  const Calibration calibration = calibrate(split(inputs).calibrating, threads_);
  const QuantizerResult quantized = quantize_awq(matrix(stacked, rows, first.k), calibration, {.grid = grid}, threads_);
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
    report.output_rel_error = output_rel_error(part, w, split(inputs).held_out, threads_);
    report.objective = quantized.objective;
    report.seconds = seconds * static_cast<double>(n) / static_cast<double>(rows);
    part.input_scales.clear();  // into the norm, below
    add_layer(layer, part, std::move(report), result);
    row += n;
  }
  const std::vector<float> ones(static_cast<std::size_t>(first.k), 1.0F);
  result.tensors.push_back(divided(model_.tensor(group.norm), scales.empty() ? ones : scales));
}

void LayerQuantizer::add_layer(const std::string& layer, const QuantizedWeights& quantized, LayerReport report,
                               GroupResult& result) const {
  report.bits_effective = quantized.bits_effective();
  report.warnings = quantized.warnings;
  for (StoredTensor& tensor : format_.store(layer, quantized)) result.tensors.push_back(std::move(tensor));
  result.layers.push_back(std::move(report));
}

std::vector<float> LayerQuantizer::weights(const std::string& layer) const {
  const TensorView tensor = model_.tensor(layer + ".weight");
  std::vector<float> values = float_values(tensor, 0, tensor.shape[0] * tensor.shape[1]);
  model_.release(tensor);
  return values;
}

// A layer's own tensor or, of layers that read the same input, that of the first one that has one.
const TensorEntry* LayerQuantizer::calibration_entry(const LayerGroup& group, const std::string& layer) const {
  if (const TensorEntry* const own = calibration_->find(layer)) return own;
  for (const std::string& other : group.layers)
    if (const TensorEntry* const shared = calibration_->find(other)) return shared;
  return nullptr;
}

LayerInputs LayerQuantizer::activations(const TensorEntry& entry) const {
  const TensorView tensor = calibration_->view(entry);
  LayerInputs inputs{.values = float_values(tensor, 0, tensor.shape[0] * tensor.shape[1]),
                     .tokens = static_cast<std::int64_t>(tensor.shape[0]),
                     .k = static_cast<std::int64_t>(tensor.shape[1])};
  calibration_->release(tensor);
  return inputs;
}

}  // namespace inferometer
