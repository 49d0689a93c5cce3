#include "reference/checkpoint/format_parts.hpp"

#include <algorithm>
#include <utility>

#include "harness/operator/nearest_word.hpp"
#include "reference/checkpoint/packed_words.hpp"

namespace inferometer {
namespace {

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::int32_t middle(std::int64_t bits) { return 1 << (bits - 1); }

}  // namespace

LayerShape shape_of(const QuantizedWeights& weights) {
  return {.n = weights.n,
          .k = weights.k,
          .settings = {.bits = weights.format.bits,
                       .group_size = weights.group_size,
                       .symmetric = weights.format.symmetric},
          .scale_dtype = weights.format.scale_dtype};
}

std::optional<std::string> unsupported_grid(const LayerShape& shape, bool word_outputs) {
  const std::int64_t bits = shape.settings.bits;
  const std::int64_t group_size = shape.settings.group_size;
  if (bits != 4 && bits != 8) return "bits must be 4 or 8, got " + std::to_string(bits);
  if (shape.n < 1 || shape.k < 1) return "it has no weights";
  if (group_size < 0) return "the group size must be at least 0, got " + std::to_string(group_size);
  if (group_size != 0 && shape.k % group_size != 0)
    return "its input features must be a multiple of the group size " + std::to_string(group_size) + ", got " +
           std::to_string(shape.k);
  if (word_outputs && shape.n % values_per_word(bits) != 0)
    return "its output features must be a multiple of " + std::to_string(values_per_word(bits)) + ", got " +
           std::to_string(shape.n);
  return std::nullopt;
}

void check_storable(const std::string& layer, const QuantizedWeights& weights, bool keeps_order) {
  if (!weights.input_scales.empty())
    throw QuantizationError(layer + ": its input scales must be folded into other weights first; a file holds none");
  if (!keeps_order && !weights.group_index.empty())
    throw QuantizationError(layer + ": groups of inputs that are no neighbours cannot be stored in this format");
}

std::vector<std::uint8_t> unsigned_codes(const QuantizedWeights& weights) {
  const std::int32_t offset = weights.format.symmetric ? middle(weights.format.bits) : 0;
  std::vector<std::uint8_t> codes(weights.codes.size());
  std::transform(weights.codes.begin(), weights.codes.end(), codes.begin(),
                 [&](std::int16_t code) { return static_cast<std::uint8_t>(code + offset); });
  return codes;
}

std::vector<std::uint8_t> unsigned_zeros(const QuantizedWeights& weights) {
  if (!weights.format.symmetric) return weights.zeros;
  return std::vector<std::uint8_t>(weights.scales.size(), static_cast<std::uint8_t>(middle(weights.format.bits)));
}

QuantizedWeights weights_from(const std::string& layer, const LayerShape& shape, std::span<const std::uint8_t> codes,
                              std::span<const std::uint8_t> zeros, std::span<const std::uint16_t> scales) {
  const QuantizationSettings& settings = shape.settings;
  QuantizedWeights weights = make_quantized_weights(
      shape.n, shape.k, {.bits = settings.bits, .symmetric = settings.symmetric, .scale_dtype = shape.scale_dtype},
      settings.group_size);
  const std::int32_t offset = settings.symmetric ? middle(settings.bits) : 0;
  std::transform(codes.begin(), codes.end(), weights.codes.begin(),
                 [&](std::uint8_t code) { return static_cast<std::int16_t>(code - offset); });
  std::copy(scales.begin(), scales.end(), weights.scales.begin());
  if (!settings.symmetric) {
    weights.zeros.assign(zeros.begin(), zeros.end());
    return weights;
  }
  const auto other = std::find_if(zeros.begin(), zeros.end(), [&](std::uint8_t zero) { return zero != offset; });
  if (other != zeros.end())
    throw QuantizationError(layer + ": symmetric weights have " + std::to_string(offset) + " as zero, got " +
                            std::to_string(*other));
  return weights;
}

TensorView required(const TensorSource& source, const std::string& name, std::size_t rank) {
  const std::optional<TensorView> tensor = source(name);
  if (!tensor) refuse_tensor(name, "is missing");
  if (tensor->shape.size() != rank)
    refuse_tensor(name, "must have " + std::to_string(rank) + " dimensions, got " + shape_text(tensor->shape));
  // With an element, its extents are those of a file: their products stay far below 64 bits.
  if (tensor->data.empty()) refuse_tensor(name, "must have elements, got " + shape_text(tensor->shape));
  return *tensor;
}

void refuse_tensor(const std::string& name, const std::string& sentence) {
  throw QuantizationError("tensor " + in_quotes(name) + ": " + sentence);
}

void require_type(const TensorView& tensor, TensorType type) {
  if (tensor.type != type)
    refuse_tensor(std::string(tensor.name),
                  "must be " + std::string(type_name(type)) + ", got " + std::string(type_name(tensor.type)));
}

void require_shape(const TensorView& tensor, const std::vector<std::uint64_t>& shape) {
  if (!std::equal(tensor.shape.begin(), tensor.shape.end(), shape.begin(), shape.end()))
    refuse_tensor(std::string(tensor.name), "must be " + shape_text(shape) + ", got " + shape_text(tensor.shape));
}

Dtype scale_dtype_of(const TensorView& tensor) {
  if (tensor.type == TensorType::f16) return Dtype::f16;
  if (tensor.type == TensorType::bf16) return Dtype::bf16;
  refuse_tensor(std::string(tensor.name), "must be F16 or BF16, got " + std::string(type_name(tensor.type)));
}

TensorType scale_type(Dtype dtype) { return dtype == Dtype::bf16 ? TensorType::bf16 : TensorType::f16; }

std::vector<StoredTensor> zipped(std::vector<TensorPlan> plans, std::vector<std::vector<std::byte>> contents) {
  std::vector<StoredTensor> tensors;
  tensors.reserve(plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i)
    tensors.push_back({.plan = std::move(plans[i]), .data = std::move(contents.at(i))});
  return tensors;
}

}  // namespace inferometer
