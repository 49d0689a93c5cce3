// compressed-tensors, "pack-quantized" (github.com/vllm-project/compressed-tensors, compressors/.../pack_quantized.py:
// pack_to_int32; vLLM: compressed_tensors/schemes/compressed_tensors_wNa16.py):
//   L.weight_packed      [n, ceil(k / per)]       I32   per = 32 / bits codes of neighbouring inputs, the first lowest;
//                                                       the last word of a row is filled up with 0
//   L.weight_scale       [n, groups]              F16 or BF16
//   L.weight_zero_point  [ceil(n / per), groups]  I32   asymmetric only; neighbouring outputs in a word
//   L.weight_shape       [2]                      I64   n, k
// There codes and zeros are signed, and stored with 2^(bits-1) added: the unsigned numbers that asymmetric grids have
// here.
#include "reference/checkpoint/format_parts.hpp"
#include "reference/checkpoint/packed_words.hpp"

namespace inferometer {
namespace {

std::optional<std::string> unsupported(const LayerShape& shape) { return unsupported_grid(shape, false); }

std::vector<TensorPlan> plan(const std::string& layer, const LayerShape& shape) {
  const auto n = static_cast<std::uint64_t>(shape.n);
  const auto groups = static_cast<std::uint64_t>(shape.groups());
  const std::int64_t bits = shape.settings.bits;
  std::vector<TensorPlan> plans{
      {layer + ".weight_packed", TensorType::i32, {n, static_cast<std::uint64_t>(words_for(shape.k, bits))}},
      {layer + ".weight_scale", scale_type(shape.scale_dtype), {n, groups}},
      {layer + ".weight_shape", TensorType::i64, {2}}};
  if (!shape.settings.symmetric)
    plans.push_back({layer + ".weight_zero_point",
                     TensorType::i32,
                     {static_cast<std::uint64_t>(words_for(shape.n, bits)), groups}});
  return plans;
}

std::vector<StoredTensor> store(const std::string& layer, const QuantizedWeights& weights) {
  check_storable(layer, weights, false);
  const std::int64_t bits = weights.format.bits;
  const std::int64_t groups = weights.groups();
  std::vector<std::vector<std::byte>> contents{
      bytes_from(pack_rows(unsigned_codes(weights), weights.n, weights.k, bits)), bytes_from(weights.scales),
      bytes_from(std::vector<std::int64_t>{weights.n, weights.k})};
  if (!weights.format.symmetric) {
    const std::vector<std::uint8_t> zeros = transposed<std::uint8_t>(unsigned_zeros(weights), weights.n, groups);
    const std::vector<std::uint32_t> words = pack_rows(zeros, groups, weights.n, bits);
    contents.push_back(bytes_from(transposed<std::uint32_t>(words, groups, words_for(weights.n, bits))));
  }
  return zipped(plan(layer, shape_of(weights)), std::move(contents));
}

QuantizedWeights load(const std::string& layer, const QuantizationSettings& settings, const TensorSource& source) {
  const TensorView packed = required(source, layer + ".weight_packed", 2);
  const TensorView scales = required(source, layer + ".weight_scale", 2);
  const TensorView extents = required(source, layer + ".weight_shape", 1);
  require_type(packed, TensorType::i32);
  require_type(extents, TensorType::i64);
  require_shape(extents, {2});
  const std::vector<std::int64_t> n_and_k = stored_values<std::int64_t>(extents);
  // What the packed words can hold bounds what their neighbour claims, before anything is multiplied or allocated.
  const auto held = static_cast<std::int64_t>(packed.shape[1]) * values_per_word(settings.bits);
  if (n_and_k[0] != static_cast<std::int64_t>(packed.shape[0]) || n_and_k[1] < 1 || n_and_k[1] > held)
    refuse_tensor(layer + ".weight_shape", "[" + std::to_string(n_and_k[0]) + ", " + std::to_string(n_and_k[1]) +
                                               "] does not fit the packed weights");
  const LayerShape shape{.n = n_and_k[0], .k = n_and_k[1], .settings = settings, .scale_dtype = scale_dtype_of(scales)};
  if (const auto sentence = unsupported(shape)) refuse_tensor(layer + ".weight_packed", *sentence);
  const std::vector<TensorPlan> plans = plan(layer, shape);
  require_shape(packed, plans[0].shape);
  require_shape(scales, plans[1].shape);
  std::vector<std::uint8_t> zeros;
  if (!settings.symmetric) {
    const TensorView zero_point = required(source, layer + ".weight_zero_point", 2);
    require_type(zero_point, TensorType::i32);
    require_shape(zero_point, plans[3].shape);
    const std::vector<std::uint32_t> words = transposed<std::uint32_t>(
        stored_values<std::uint32_t>(zero_point), words_for(shape.n, settings.bits), shape.groups());
    zeros =
        transposed<std::uint8_t>(unpack_rows(words, shape.groups(), shape.n, settings.bits), shape.groups(), shape.n);
  }
  return weights_from(layer, shape, unpack_rows(stored_values<std::uint32_t>(packed), shape.n, shape.k, settings.bits),
                      zeros, stored_values<std::uint16_t>(scales));
}

}  // namespace

const WeightFormat kCompressedTensorsFormat{"compressed-tensors", &unsupported, &plan, &store, &load};

}  // namespace inferometer
