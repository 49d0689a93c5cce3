// GPTQ, as AutoGPTQ and GPTQModel write it (auto_gptq/nn_modules/qlinear/*.py: pack(); gptqmodel/utils/model.py:
// conversion between v1 and v2) and vLLM loads it (vllm/model_executor/layers/quantization/gptq.py):
//   L.qweight  [k / per, n]       I32   per = 32 / bits codes of neighbouring inputs in a word, the first lowest
//   L.qzeros   [groups, n / per]  I32   zeros of neighbouring outputs in a word; v1 stores zero - 1, v2 zero
//   L.scales   [groups, n]        F16
//   L.g_idx    [k]                I32   group of each input
#include "reference/checkpoint/format_parts.hpp"
#include "reference/checkpoint/packed_words.hpp"

namespace inferometer {
namespace {

constexpr int kV1Offset = 1;
constexpr int kV2Offset = 0;

std::optional<std::string> unsupported(const LayerShape& shape) {
  if (auto sentence = unsupported_grid(shape, true)) return sentence;
  if (shape.k % values_per_word(shape.settings.bits) != 0)
    return "its input features must be a multiple of " + std::to_string(values_per_word(shape.settings.bits)) +
           ", got " + std::to_string(shape.k);
  return std::nullopt;
}

std::vector<TensorPlan> plan(const std::string& layer, const LayerShape& shape) {
  const auto n = static_cast<std::uint64_t>(shape.n);
  const auto k = static_cast<std::uint64_t>(shape.k);
  const auto groups = static_cast<std::uint64_t>(shape.groups());
  const auto per_word = static_cast<std::uint64_t>(values_per_word(shape.settings.bits));
  return {{layer + ".qweight", TensorType::i32, {k / per_word, n}},
          {layer + ".qzeros", TensorType::i32, {groups, n / per_word}},
          {layer + ".scales", scale_type(shape.scale_dtype), {groups, n}},
          {layer + ".g_idx", TensorType::i32, {k}}};
}

template <int kZeroOffset>
std::vector<StoredTensor> store(const std::string& layer, const QuantizedWeights& weights) {
  check_storable(layer, weights, true);
  const std::int64_t bits = weights.format.bits;
  const std::int64_t groups = weights.groups();
  std::vector<std::uint8_t> zeros =
      transposed<std::uint8_t>(unsigned_zeros(weights), weights.n, groups);  // [groups, n]
  for (std::uint8_t& zero : zeros) {
    const int stored = zero - kZeroOffset;
    if (stored < 0)
      throw QuantizationError(layer +
                              ": a zero of 0 cannot be written in the first GPTQ format, which stores zero - 1; "
                              "gptq_v2, awq and compressed-tensors hold it");
    if (stored >= 1 << bits)
      throw QuantizationError(layer + ": a zero of " + std::to_string(zero) + " does not fit in " +
                              std::to_string(bits) + " bits");
    zero = static_cast<std::uint8_t>(stored);
  }
  std::vector<std::int32_t> group_index(static_cast<std::size_t>(weights.k));
  for (std::int64_t i = 0; i < weights.k; ++i)
    group_index[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(weights.group_of(i));
  const std::vector<std::uint32_t> words = pack_rows(unsigned_codes(weights), weights.n, weights.k, bits);
  return zipped(plan(layer, shape_of(weights)),
                {bytes_from(transposed<std::uint32_t>(words, weights.n, words_for(weights.k, bits))),
                 bytes_from(pack_rows(zeros, groups, weights.n, bits)),
                 bytes_from(transposed<std::uint16_t>(weights.scales, weights.n, groups)), bytes_from(group_index)});
}

// Empty when the groups are neighbours, as without act-order.
std::vector<std::int32_t> read_group_index(const TensorView& tensor, const QuantizedWeights& weights) {
  require_type(tensor, TensorType::i32);
  require_shape(tensor, {static_cast<std::uint64_t>(weights.k)});
  std::vector<std::int32_t> index = stored_values<std::int32_t>(tensor);
  bool neighbours = true;
  for (std::int64_t i = 0; i < weights.k; ++i) {
    const std::int32_t group = index[static_cast<std::size_t>(i)];
    if (group < 0 || group >= weights.groups())
      refuse_tensor(std::string(tensor.name), "input " + std::to_string(i) + " must be in a group from 0 to " +
                                                  std::to_string(weights.groups() - 1) + ", got " +
                                                  std::to_string(group));
    neighbours = neighbours && group == weights.group_of(i);
  }
  if (neighbours) index.clear();
  return index;
}

template <int kZeroOffset>
QuantizedWeights load(const std::string& layer, const QuantizationSettings& settings, const TensorSource& source) {
  const TensorView qweight = required(source, layer + ".qweight", 2);
  const TensorView qzeros = required(source, layer + ".qzeros", 2);
  const TensorView scales = required(source, layer + ".scales", 2);
  const LayerShape shape{.n = static_cast<std::int64_t>(qweight.shape[1]),
                         .k = static_cast<std::int64_t>(qweight.shape[0]) * values_per_word(settings.bits),
                         .settings = settings,
                         .scale_dtype = scale_dtype_of(scales)};
  if (const auto sentence = unsupported(shape)) refuse_tensor(layer + ".qweight", *sentence);
  const std::vector<TensorPlan> plans = plan(layer, shape);
  require_type(qweight, TensorType::i32);
  require_type(qzeros, TensorType::i32);
  require_shape(qzeros, plans[1].shape);
  require_shape(scales, plans[2].shape);

  const std::int64_t groups = shape.groups();
  const std::vector<std::uint32_t> words =
      transposed<std::uint32_t>(stored_values<std::uint32_t>(qweight), words_for(shape.k, settings.bits), shape.n);
  std::vector<std::uint8_t> zeros = unpack_rows(stored_values<std::uint32_t>(qzeros), groups, shape.n, settings.bits);
  for (std::uint8_t& zero : zeros) {
    const int value = zero + kZeroOffset;
    if (value > 0xff) refuse_tensor(layer + ".qzeros", "a stored zero of 255 stands for 256, beyond all codes");
    zero = static_cast<std::uint8_t>(value);
  }
  QuantizedWeights weights =
      weights_from(layer, shape, unpack_rows(words, shape.n, shape.k, settings.bits),
                   transposed<std::uint8_t>(zeros, groups, shape.n),
                   transposed<std::uint16_t>(stored_values<std::uint16_t>(scales), groups, shape.n));
  if (const std::optional<TensorView> g_idx = source(layer + ".g_idx"))
    weights.group_index = read_group_index(*g_idx, weights);
  return weights;
}

}  // namespace

const WeightFormat kGptqFormat{"gptq", &unsupported, &plan, &store<kV1Offset>, &load<kV1Offset>};
const WeightFormat kGptqV2Format{"gptq_v2", &unsupported, &plan, &store<kV2Offset>, &load<kV2Offset>};

}  // namespace inferometer
