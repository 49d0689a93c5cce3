// The equations against what can be computed by hand, and the CPU's decoder against the equations.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "reference/decoder/cpu_decoder.hpp"
#include "reference/decoder/equations.hpp"
#include "reference/decoder/quantized_rows.hpp"
#include "reference/decoder/seeded_weights.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

// Weights that a test writes down; those it does not name are 0, gains 1.
class WrittenWeights : public DecoderWeights {
 public:
  WrittenWeights(DecoderShape shape, std::map<DecoderWeight, std::vector<float>> values)
      : shape_(std::move(shape)), values_(std::move(values)) {}

  const DecoderShape& shape() const override { return shape_; }
  void read(const PlacedWeight& tensor, std::int64_t row, std::int64_t rows,
            std::span<std::uint16_t> to) const override {
    const auto found = values_.find(tensor.weight);
    const WeightSize size = weight_size(shape_, tensor.weight);
    const bool is_gain = size.rows == 1 && tensor.weight != DecoderWeight::q_bias &&
                         tensor.weight != DecoderWeight::k_bias && tensor.weight != DecoderWeight::v_bias;
    for (std::int64_t i = 0; i < rows * size.columns; ++i) {
      const auto at = static_cast<std::size_t>(row * size.columns + i);
      to[static_cast<std::size_t>(i)] = f16_bits(found != values_.end() ? found->second.at(at) : is_gain ? 1.0F : 0.0F);
    }
  }

 private:
  DecoderShape shape_;
  std::map<DecoderWeight, std::vector<float>> values_;
};

// Two dimensions, one head of two, three tokens; the head is the embedding.
DecoderShape hand_shape() {
  return {.name = "hand",
          .hidden = 2,
          .head_dim = 2,
          .intermediate = 1,
          .vocabulary = 3,
          .max_length = 8,
          .norm_eps = 1e-12,
          .tied_head = true};
}

const std::vector<float> kEmbedding{3, 4, 1, 0, 0, 2};
const std::vector<float> kIdentity{1, 0, 0, 1};

void check_row(const DecoderMatrix& logits, Eigen::Index row, double x, double y) {
  // logits = embedding . RMSNorm(x, y)
  const double rms = std::sqrt((x * x + y * y) / 2);
  const std::vector<double> expected{(3 * x + 4 * y) / rms, x / rms, 2 * y / rms};
  for (Eigen::Index i = 0; i < 3; ++i) CHECK(std::abs(logits(row, i) - expected[static_cast<std::size_t>(i)]) < 1e-3);
}

TEST_CASE("decoder: without layers' weights, logits are the embedding's products with its own normed row",
          "[decoder][reference]") {
  const WrittenWeights weights(hand_shape(), {{DecoderWeight::embedding, kEmbedding}});
  const DecoderMatrix logits = decoder_logits(weights, std::vector<std::int32_t>{0, 2}, {});
  check_row(logits, 0, 3, 4);
  check_row(logits, 1, 0, 2);
}

TEST_CASE("decoder: keys of 0 spread attention evenly over the tokens up to one's own", "[decoder][reference]") {
  const WrittenWeights weights(
      hand_shape(),
      {{DecoderWeight::embedding, kEmbedding}, {DecoderWeight::v, kIdentity}, {DecoderWeight::o, kIdentity}});
  const DecoderMatrix logits = decoder_logits(weights, std::vector<std::int32_t>{1, 2}, {});
  // RMSNorm of (1, 0) is (sqrt 2, 0), of (0, 2) it is (0, sqrt 2).
  const double root = std::sqrt(2.0);
  check_row(logits, 0, 1 + root, 0);
  check_row(logits, 1, root / 2, 2 + root / 2);
}

TEST_CASE("decoder: RoPE turns queries and keys by their distance", "[decoder][reference]") {
  // q = k = the normed token (sqrt 2, 0) at both places: scores 2 / sqrt 2 and 2 cos(1) / sqrt 2. Values tell the
  // places apart by nothing but their weights, so the second token differs: embedding 3 is token 1 with a mark in v.
  DecoderShape shape = hand_shape();
  const WrittenWeights weights(shape, {{DecoderWeight::embedding, {1, 0, -1, 0, 0, 1}},
                                       {DecoderWeight::q, {1, 0, 0, 0}},
                                       {DecoderWeight::k, {1, 0, 0, 0}},
                                       {DecoderWeight::v, kIdentity},
                                       {DecoderWeight::o, {0, 0, 1, 0}}});
  const DecoderMatrix logits = decoder_logits(weights, std::vector<std::int32_t>{1, 0}, {});
  const double root = std::sqrt(2.0);
  const double own = root * root / root;                     // q . k / sqrt(2)
  const double other = -root * root * std::cos(1.0) / root;  // the key's sign is turned, and it stands one before
  const double share = std::exp(own) / (std::exp(own) + std::exp(other));
  const double y = root * share - root * (1 - share);  // o moves v's first dimension to the second of h
  const double rms = std::sqrt((1 + y * y) / 2);
  CHECK(std::abs(logits(1, 0) - 1 / rms) < 1e-3);
  CHECK(std::abs(logits(1, 2) - y / rms) < 1e-3);
}

TEST_CASE("decoder: the MLP is silu(gate) times up, back through down", "[decoder][reference]") {
  const WrittenWeights weights(hand_shape(), {{DecoderWeight::embedding, kEmbedding},
                                              {DecoderWeight::gate, {1, 0}},
                                              {DecoderWeight::up, {0.5F, 0}},
                                              {DecoderWeight::down, {0, 1}}});
  const DecoderMatrix logits = decoder_logits(weights, std::vector<std::int32_t>{1}, {});
  const double root = std::sqrt(2.0);
  check_row(logits, 0, 1, root / (1 + std::exp(-root)) * root / 2);
}

TEST_CASE("decoder: biases of v and norms of q and k enter where they should", "[decoder][reference]") {
  DecoderShape shape = hand_shape();
  shape.qkv_bias = true;
  const WrittenWeights biased(
      shape,
      {{DecoderWeight::embedding, kEmbedding}, {DecoderWeight::v_bias, {0, 0.5F}}, {DecoderWeight::o, kIdentity}});
  check_row(decoder_logits(biased, std::vector<std::int32_t>{1}, {}), 0, 1, 0.5);

  // With norms, queries and keys that differ in length alone give the same scores.
  shape = hand_shape();
  shape.qk_norm = true;
  const auto with_q = [&](float length) {
    return decoder_logits(WrittenWeights(shape, {{DecoderWeight::embedding, kEmbedding},
                                                 {DecoderWeight::q, {length, 0, 0, length}},
                                                 {DecoderWeight::k, kIdentity},
                                                 {DecoderWeight::v, kIdentity},
                                                 {DecoderWeight::o, kIdentity}}),
                          std::vector<std::int32_t>{1, 2, 0}, {});
  };
  CHECK((with_q(1) - with_q(4)).norm() < 1e-3);
}

std::vector<DecoderShape> switched_shapes() {
  std::vector<DecoderShape> shapes(5, decoder_shape("tiny"));
  shapes[1].tied_head = true;
  shapes[2].qkv_bias = true;
  shapes[3].qk_norm = true;
  shapes[4].kv_heads = 1;
  return shapes;
}

TEST_CASE("decoder: the CPU's decoder follows the equations token by token and in chunks", "[decoder][reference]") {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < 21; ++i) tokens.push_back((i * 197 + 3) % 512);
  for (const DecoderShape& shape : switched_shapes())
    for (const DecoderBits& bits : {DecoderBits{16, 16}, DecoderBits{4, 16}, DecoderBits{8, 16}, DecoderBits{16, 8}}) {
      const SeededWeights weights(shape, 3);
      const DecoderMatrix expected = decoder_logits(weights, tokens, bits);
      const CpuDecoder decoder(weights, bits, 2);
      CpuKvCache cache(shape, 21);
      for (const std::size_t count : {7, 1, 1, 8, 4}) {
        const auto begin = static_cast<std::size_t>(cache.length());
        const std::vector<float> logits = decoder.step(std::span(tokens).subspan(begin, count), cache);
        const auto row = expected.row(static_cast<Eigen::Index>(begin + count - 1));
        const Eigen::Map<const Eigen::RowVectorXf> got(logits.data(), row.size());
        // A sum that f32 moves by 1e-6 falls on the other side of a tie for one key in 500, which then errs by 2^-11:
        // 2e-5 on average. With codes of 8 bits it is one in 10^4, by a step of 0.02.
        CHECK((got.cast<double>() - row).norm() / row.norm() < (bits.kv == 16 ? 1e-4 : 2e-3));
      }
    }
}

TEST_CASE("decoder: the CPU's decoder refuses what does not fit", "[decoder][reference]") {
  const SeededWeights weights(decoder_shape("tiny"), 3);
  const CpuDecoder decoder(weights, {}, 1);
  CpuKvCache cache(weights.shape(), 2);
  CHECK_THROWS_WITH(decoder.step({}, cache), "cpu decoder: a step must have a token, got none");
  CHECK_THROWS_WITH(decoder.step(std::vector<std::int32_t>{1, 2, 3}, cache),
                    "cpu decoder: the cache holds 2 tokens, got 0 and 3 more");
  CHECK_THROWS_WITH(decoder.step(std::vector<std::int32_t>{512}, cache),
                    "cpu decoder: tokens must be 0 to 511, got 512");
}

TEST_CASE("decoder: a row of weights is rounded to the grid of each group", "[decoder][reference]") {
  std::vector<float> row(130, 0.0F);
  row[0] = 7;     // group 0: scale 1 with 4 bits
  row[1] = 2.5F;  // to even
  row[2] = -3.6F;
  row[128] = 0.5F;  // the short group behind it: scale 0.5 / 7, rounded to f16
  row[129] = -0.25F;
  quantize_weight_row(4, row);
  const float scale = f16_value(f16_bits(0.5F / 7));
  CHECK(row[0] == 7);
  CHECK(row[1] == 2);
  CHECK(row[2] == -4);
  CHECK(row[128] == 7 * scale);
  CHECK(row[129] == -4 * scale);  // -3.5 to even
  CHECK(row[64] == 0);
}

}  // namespace
}  // namespace inferometer::test
