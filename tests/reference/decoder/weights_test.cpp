// Names, sizes and random values of a decoder's weights.
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "harness/operator/fields.hpp"
#include "reference/decoder/seeded_weights.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

TEST_CASE("decoder: named shapes have the parameters that their models are known for", "[decoder][reference]") {
  CHECK(parameters(decoder_shape("tinyllama")) == 1'100'048'384);
  CHECK(parameters(decoder_shape("llama2_7b")) == 6'738'415'616);
  CHECK(parameters(decoder_shape("llama3_8b")) == 8'030'261'248);
  CHECK(parameters(decoder_shape("llama3_70b")) == 70'553'706'496);
  CHECK(parameters(decoder_shape("mistral_7b")) == 7'248'023'552);
  CHECK(parameters(decoder_shape("qwen25_7b")) == 7'615'616'512);
  CHECK(parameters(decoder_shape("qwen3_8b")) == 8'190'735'360);
}

TEST_CASE("decoder: a shape that there is not is answered with those there are", "[decoder][reference]") {
  CHECK_THROWS_WITH(decoder_shape("llama"), Catch::Contains("tiny, tinyllama, llama2_7b, llama3_8b"));
}

TEST_CASE("decoder: a shape that cannot be is refused, naming the field", "[decoder][reference]") {
  DecoderShape shape = decoder_shape("tiny");
  shape.kv_heads = 3;
  CHECK_THROWS_WITH(check(shape), "kv_heads must divide q_heads (4), got 3");
  shape = decoder_shape("tiny");
  shape.head_dim = 63;
  CHECK_THROWS_WITH(check(shape), "head_dim must be even, got 63");
  shape = decoder_shape("tiny");
  shape.layers = 0;
  CHECK_THROWS_WITH(check(shape), "layers must be at least 1, got 0");
}

TEST_CASE("decoder: tensors are named as transformers names them, each once", "[decoder][reference]") {
  DecoderShape shape = decoder_shape("tiny");
  shape.qkv_bias = true;
  shape.qk_norm = true;
  std::set<std::string> names;
  const std::vector<PlacedWeight> tensors = all_weights(shape);
  for (const PlacedWeight& tensor : tensors) names.insert(weight_name(tensor.weight, tensor.layer));
  CHECK(names.size() == tensors.size());
  CHECK(names.size() == 2 * 14 + 3);
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.self_attn.k_proj.bias",
                           "model.layers.0.mlp.down_proj.weight", "model.norm.weight", "lm_head.weight"})
    CHECK(names.contains(name));
  shape.tied_head = true;
  CHECK(all_weights(shape).size() == tensors.size() - 1);
}

TEST_CASE("decoder: seeded weights can be read in any pieces, and have the spread that they should",
          "[decoder][reference]") {
  const SeededWeights weights(decoder_shape("tiny"), 9);
  for (const PlacedWeight& tensor : all_weights(weights.shape())) {
    const WeightSize size = weight_size(weights.shape(), tensor.weight);
    std::vector<std::uint16_t> whole(static_cast<std::size_t>(size.elements()));
    weights.read(tensor, 0, size.rows, whole);
    std::vector<std::uint16_t> last(static_cast<std::size_t>(size.columns));
    weights.read(tensor, size.rows - 1, 1, last);
    CHECK(std::vector(whole.end() - size.columns, whole.end()) == last);
    double sum = 0;
    double squares = 0;
    for (const std::uint16_t bits : whole) {
      sum += static_cast<double>(f16_value(bits));
      squares += std::pow(static_cast<double>(f16_value(bits)), 2);
    }
    const auto count = static_cast<double>(size.elements());
    const bool is_gain = size.rows == 1;  // this shape has no biases
    const double stddev = is_gain ? 0.1
                          : tensor.weight == DecoderWeight::embedding
                              ? 1
                              : 1 / std::sqrt(static_cast<double>(size.columns));
    INFO(weight_name(tensor.weight, tensor.layer));
    // Five standard errors of mean and variance.
    CHECK(std::abs(sum / count - (is_gain ? 1 : 0)) < 5 * stddev / std::sqrt(count));
    const double variance = squares / count - std::pow(sum / count, 2);
    CHECK(std::abs(variance / (stddev * stddev) - 1) < 5 * std::sqrt(2 / count));
  }
}

}  // namespace
}  // namespace inferometer::test
