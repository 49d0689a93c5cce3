// What the judge of tokens passes and what it finds in a deep model, where errors of rounding grow from layer to layer.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "harness/operator/generate.hpp"
#include "reference/decoder/chosen_tokens.hpp"
#include "reference/decoder/seeded_weights.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

// As deep as a model of 8e9 parameters, and otherwise small.
DecoderShape deep_shape() {
  DecoderShape shape = decoder_shape("tiny");
  shape.layers = 32;
  shape.hidden = 128;
  shape.q_heads = 4;
  shape.head_dim = 32;
  shape.intermediate = 256;
  shape.vocabulary = 2048;
  return shape;
}

// The seeded weights, of which a test changes rows as they are read.
class ChangedWeights : public DecoderWeights {
 public:
  using Change = std::function<void(const SeededWeights& seeded, const PlacedWeight& tensor, std::int64_t row,
                                    std::int64_t rows, std::span<std::uint16_t> to)>;
  ChangedWeights(DecoderShape shape, Change change) : seeded_(std::move(shape), 5), change_(std::move(change)) {}

  const DecoderShape& shape() const override { return seeded_.shape(); }
  void read(const PlacedWeight& tensor, std::int64_t row, std::int64_t rows,
            std::span<std::uint16_t> to) const override {
    seeded_.read(tensor, row, rows, to);
    change_(seeded_, tensor, row, rows, to);
  }

 private:
  SeededWeights seeded_;
  Change change_;
};

bool is_kv(const PlacedWeight& tensor) {
  return tensor.weight == DecoderWeight::k || tensor.weight == DecoderWeight::v;
}

// Rounding of another kind: the last bit of every other embedded value is another one.
void nudge(const SeededWeights& /*seeded*/, const PlacedWeight& tensor, std::int64_t /*row*/, std::int64_t /*rows*/,
           std::span<std::uint16_t> to) {
  if (tensor.weight != DecoderWeight::embedding) return;
  for (std::size_t i = 0; i < to.size(); i += 2) to[i] ^= 1U;
}

class Judged {
 public:
  explicit Judged(std::int64_t kv_bits) : bits_{.kv = kv_bits} {
    for (std::uint64_t i = 0; i < 96; ++i)
      tokens_.push_back(static_cast<std::int32_t>(mix_bits(stream_key(3, i)) % 2048));
    const SeededWeights weights(deep_shape(), 5);
    exact_ = decoder_logits(weights, tokens_, bits_, kPrompt);
    error_ = logits_error(exact_, decoder_logits(weights, tokens_, rounded(), kPrompt));
  }

  double error() const { return error_; }
  DecoderBits rounded() const { return {.kv = bits_.kv, .activations = 16}; }

  // Of the tokens that another decoder chooses, given the same ones in front.
  std::string sentence(const DecoderWeights& weights, const DecoderBits& bits) const {
    const DecoderMatrix logits = decoder_logits(weights, tokens_, bits, kPrompt);
    std::vector<std::int32_t> chosen;
    for (Eigen::Index i = 0; i < logits.rows(); ++i) {
      Eigen::Index best = 0;
      logits.row(i).maxCoeff(&best);
      chosen.push_back(static_cast<std::int32_t>(best));
    }
    return audit_gaps(exact_, std::span(tokens_).subspan(kPrompt), chosen, error_);
  }
  std::string sentence(const ChangedWeights::Change& change) const {
    return sentence(ChangedWeights(deep_shape(), change), rounded());
  }

 private:
  static constexpr std::int64_t kPrompt = 32;

  DecoderBits bits_;
  std::vector<std::int32_t> tokens_;
  DecoderMatrix exact_;
  double error_ = 0;
};

const Judged& judged(std::int64_t kv_bits) {
  static std::map<std::int64_t, Judged> made;  // passes of the equations take most of the time
  return made.try_emplace(kv_bits, kv_bits).first->second;
}

TEST_CASE("chosen tokens: in 32 layers f16 activations move logits by a hundredth with codes of 8 bits, a tenth with 4",
          "[decoder][reference]") {
  CHECK(judged(16).error() < 2e-3);
  CHECK(judged(8).error() > 5e-3);
  CHECK(judged(8).error() < 2e-2);
  CHECK(judged(4).error() > 5e-2);
  CHECK(judged(4).error() < 2e-1);
}

TEST_CASE("chosen tokens: other roundings than those that the limits follow from pass", "[decoder][reference]") {
  for (const std::int64_t kv_bits : {16, 8, 4}) {
    INFO("kv_bits " << kv_bits);
    CHECK(judged(kv_bits).sentence(&nudge) == "");
  }
}

TEST_CASE("chosen tokens: faults of a cache are found in 32 layers", "[decoder][reference]") {
  const std::int64_t head_dim = deep_shape().head_dim;
  // One layer's KV heads, of which there are two, in each other's place.
  const auto swapped = [&](const SeededWeights& seeded, const PlacedWeight& tensor, std::int64_t row, std::int64_t rows,
                           std::span<std::uint16_t> to) {
    if (is_kv(tensor) && tensor.layer == 16) seeded.read(tensor, (row + head_dim) % (2 * head_dim), rows, to);
  };
  // One layer with keys and values of the one in front of it.
  const auto other_layer = [](const SeededWeights& seeded, const PlacedWeight& tensor, std::int64_t row,
                              std::int64_t rows, std::span<std::uint16_t> to) {
    if (is_kv(tensor) && tensor.layer == 16) seeded.read({tensor.weight, 15}, row, rows, to);
  };
  // Scales that are an eighth too small, in all layers.
  const auto scales = [](const SeededWeights& /*seeded*/, const PlacedWeight& tensor, std::int64_t /*row*/,
                         std::int64_t /*rows*/, std::span<std::uint16_t> to) {
    if (is_kv(tensor))
      for (std::uint16_t& x : to) x = f16_bits(f16_value(x) * 0.875F);
  };
  for (const std::int64_t kv_bits : {8, 4}) {
    INFO("kv_bits " << kv_bits);
    CHECK(judged(kv_bits).sentence(swapped) != "");
    CHECK(judged(kv_bits).sentence(other_layer) != "");
    CHECK(judged(kv_bits).sentence(scales) != "");
  }
  // With codes of 4 bits these move logits hardly more than other roundings do.
  CHECK(judged(8).sentence(SeededWeights(deep_shape(), 5), {.kv = 4}) != "");
  DecoderShape turned = deep_shape();
  turned.rope_theta *= 2;
  CHECK(judged(8).sentence(SeededWeights(turned, 5), judged(8).rounded()) != "");
}

TEST_CASE("chosen tokens: of tokens behind equal ones the mean counts the first", "[decoder][reference]") {
  DecoderMatrix exact = DecoderMatrix::Zero(8, 4);
  exact.col(0).setConstant(1.0);
  exact.col(1).setConstant(0.99);  // 0.014 of the root mean square, 0.704, below the greatest
  const std::vector<std::int32_t> chosen(8, 1);
  const std::vector<std::int32_t> circle(8, 5);
  const std::vector<std::int32_t> different{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(audit_gaps(exact, circle, chosen, 0.003) == "");
  CHECK(audit_gaps(exact, different, chosen, 0.003).substr(0, 55) ==
        "all new tokens: on average they are 0.014213 times the ");
  CHECK(audit_gaps(exact, different, chosen, 0.001).substr(0, 14) == "new token 0: 1");
}

}  // namespace
}  // namespace inferometer::test
