// AWQ for GEMM kernels, as AutoAWQ writes it (awq/modules/linear/gemm.py: WQLinear_GEMM.from_linear) and vLLM loads it
// (vllm/model_executor/layers/quantization/awq.py):
//   L.qweight  [k, n / 8]       I32   eight neighbouring outputs in a word, from the lowest bits: 0 2 4 6 1 3 5 7
//   L.qzeros   [groups, n / 8]  I32   the same order
//   L.scales   [groups, n]      F16
// A symmetric layer is stored with 8 as every zero, and comes back as an asymmetric one of the same weights: the file
// does not tell them apart.
#include <array>

#include "reference/checkpoint/format_parts.hpp"
#include "reference/checkpoint/packed_words.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kBits = 4;
constexpr std::array<int, 8> kPlaces{0, 4, 1, 5, 2, 6, 3, 7};  // of output i: codes 0..7 make the word 0x75316420

std::optional<std::string> unsupported(const LayerShape& shape) {
  if (shape.settings.bits != kBits) return "awq holds 4 bits alone, got " + std::to_string(shape.settings.bits);
  return unsupported_grid(shape, true);
}

std::vector<TensorPlan> plan(const std::string& layer, const LayerShape& shape) {
  const auto n = static_cast<std::uint64_t>(shape.n);
  const auto groups = static_cast<std::uint64_t>(shape.groups());
  const auto words = static_cast<std::uint64_t>(words_for(shape.n, kBits));
  return {{layer + ".qweight", TensorType::i32, {static_cast<std::uint64_t>(shape.k), words}},
          {layer + ".qzeros", TensorType::i32, {groups, words}},
          {layer + ".scales", scale_type(shape.scale_dtype), {groups, n}}};
}

std::vector<StoredTensor> store(const std::string& layer, const QuantizedWeights& weights) {
  check_storable(layer, weights, false);
  const std::int64_t groups = weights.groups();
  const std::vector<std::uint8_t> codes = transposed<std::uint8_t>(unsigned_codes(weights), weights.n, weights.k);
  const std::vector<std::uint8_t> zeros = transposed<std::uint8_t>(unsigned_zeros(weights), weights.n, groups);
  return zipped(plan(layer, shape_of(weights)),
                {bytes_from(pack_rows(codes, weights.k, weights.n, kBits, kPlaces)),
                 bytes_from(pack_rows(zeros, groups, weights.n, kBits, kPlaces)),
                 bytes_from(transposed<std::uint16_t>(weights.scales, weights.n, groups))});
}

QuantizedWeights load(const std::string& layer, const QuantizationSettings& settings, const TensorSource& source) {
  const TensorView qweight = required(source, layer + ".qweight", 2);
  const TensorView qzeros = required(source, layer + ".qzeros", 2);
  const TensorView scales = required(source, layer + ".scales", 2);
  const LayerShape shape{.n = static_cast<std::int64_t>(scales.shape[1]),
                         .k = static_cast<std::int64_t>(qweight.shape[0]),
                         .settings = {.bits = settings.bits, .group_size = settings.group_size, .symmetric = false},
                         .scale_dtype = scale_dtype_of(scales)};
  if (const auto sentence = unsupported(shape)) refuse_tensor(layer + ".qweight", *sentence);
  const std::vector<TensorPlan> plans = plan(layer, shape);
  require_type(qweight, TensorType::i32);
  require_type(qzeros, TensorType::i32);
  require_shape(qweight, plans[0].shape);
  require_shape(qzeros, plans[1].shape);
  require_shape(scales, plans[2].shape);

  const std::int64_t groups = shape.groups();
  const std::vector<std::uint8_t> codes =
      unpack_rows(stored_values<std::uint32_t>(qweight), shape.k, shape.n, kBits, kPlaces);
  const std::vector<std::uint8_t> zeros =
      unpack_rows(stored_values<std::uint32_t>(qzeros), groups, shape.n, kBits, kPlaces);
  return weights_from(layer, shape, transposed<std::uint8_t>(codes, shape.k, shape.n),
                      transposed<std::uint8_t>(zeros, groups, shape.n),
                      transposed<std::uint16_t>(stored_values<std::uint16_t>(scales), groups, shape.n));
}

}  // namespace

const WeightFormat kAwqFormat{"awq", &unsupported, &plan, &store, &load};

}  // namespace inferometer
