#include "reference/checkpoint/weight_format.hpp"

#include <map>
#include <random>

#include "reference/checkpoint/format_parts.hpp"
#include "reference/checkpoint/packed_words.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using inferometer::test::contains_text;

namespace {

constexpr const char* kLayer = "model.layers.0.mlp.up_proj";

// Stored tensors as a file would hand them out.
class Tensors {
 public:
  explicit Tensors(std::vector<StoredTensor> tensors) {
    for (StoredTensor& tensor : tensors) by_name_.emplace(tensor.plan.name, std::move(tensor));
  }
  StoredTensor& at(const std::string& part) { return by_name_.at(std::string(kLayer) + "." + part); }
  void erase(const std::string& part) { by_name_.erase(std::string(kLayer) + "." + part); }
  std::vector<std::uint32_t> words(const std::string& part) {
    const StoredTensor& tensor = at(part);
    std::vector<std::uint32_t> words(tensor.data.size() / 4);
    std::memcpy(words.data(), tensor.data.data(), tensor.data.size());
    return words;
  }
  TensorSource source() const {
    return [this](const std::string& name) -> std::optional<TensorView> {
      const auto found = by_name_.find(name);
      if (found == by_name_.end()) return std::nullopt;
      const StoredTensor& tensor = found->second;
      return TensorView{
          .name = tensor.plan.name, .type = tensor.plan.type, .shape = tensor.plan.shape, .data = tensor.data};
    };
  }

 private:
  std::map<std::string, StoredTensor> by_name_;
};

QuantizedWeights random_weights(std::int64_t n, std::int64_t k, const QuantizationSettings& settings, Dtype scales,
                                unsigned seed) {
  const GridFormat format{.bits = settings.bits, .symmetric = settings.symmetric, .scale_dtype = scales};
  QuantizedWeights weights = make_quantized_weights(n, k, format, settings.group_size);
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> codes(format.least_code(), format.largest_code());
  std::uniform_int_distribution<int> zeros(1, format.largest_code());  // 0 has a case of its own
  for (auto& code : weights.codes) code = static_cast<std::int16_t>(codes(random));
  for (auto& scale : weights.scales) scale = static_cast<std::uint16_t>(random() & 0x3fff);
  for (auto& zero : weights.zeros) zero = static_cast<std::uint8_t>(zeros(random));
  return weights;
}

void check_equal(const QuantizedWeights& a, const QuantizedWeights& b) {
  CHECK(a.n == b.n);
  CHECK(a.k == b.k);
  CHECK(a.group_size == b.group_size);
  CHECK(a.format.bits == b.format.bits);
  CHECK(a.format.symmetric == b.format.symmetric);
  CHECK(a.format.scale_dtype == b.format.scale_dtype);
  CHECK(a.codes == b.codes);
  CHECK(a.scales == b.scales);
  CHECK(a.zeros == b.zeros);
  CHECK(a.group_index == b.group_index);
}

// What the two are worth, weight by weight, to the bit.
void check_same_worth(const QuantizedWeights& a, const QuantizedWeights& b) {
  REQUIRE((a.n == b.n && a.k == b.k));
  for (std::int64_t j = 0; j < a.n; ++j)
    for (std::int64_t i = 0; i < a.k; ++i) REQUIRE(a.weight(j, i) == b.weight(j, i));
}

std::vector<QuantizationSettings> all_settings() {
  std::vector<QuantizationSettings> all;
  for (const std::int64_t bits : {4, 8})
    for (const std::int64_t group_size : {0, 16, 32})
      for (const bool symmetric : {true, false})
        all.push_back({.bits = bits, .group_size = group_size, .symmetric = symmetric});
  return all;
}

}  // namespace

TEST_CASE("formats: every layer comes back bit for bit", "[checkpoint]") {
  unsigned seed = 0;
  for (const WeightFormat* format : weight_formats()) {
    for (const QuantizationSettings& settings : all_settings()) {
      for (const Dtype scales : {Dtype::f16, Dtype::bf16}) {
        CAPTURE(format->name, settings.bits, settings.group_size, settings.symmetric, dtype_name(scales));
        const QuantizedWeights weights = random_weights(24, 96, settings, scales, ++seed);
        if (format->unsupported(shape_of(weights))) {
          CHECK((format == &kAwqFormat && settings.bits == 8));
          continue;
        }
        Tensors tensors(format->store(kLayer, weights));
        const QuantizedWeights back = format->load(kLayer, settings, tensors.source());
        check_same_worth(back, weights);
        if (format == &kAwqFormat && settings.symmetric) {
          CHECK(back.zeros == std::vector<std::uint8_t>(weights.scales.size(), 8));
        } else {
          check_equal(back, weights);
        }
        // Written once more, the bytes are the same.
        const std::vector<StoredTensor> first = format->store(kLayer, weights);
        const std::vector<StoredTensor> second = format->store(kLayer, back);
        const std::vector<TensorPlan> plans = format->plan(kLayer, shape_of(weights));
        REQUIRE(first.size() == second.size());
        REQUIRE(first.size() == plans.size());
        for (std::size_t i = 0; i < first.size(); ++i) {
          CHECK(first[i].data == second[i].data);
          CHECK(first[i].plan.name == plans[i].name);
          CHECK(first[i].plan.shape == plans[i].shape);
          CHECK(first[i].data.size() == *tensor_bits(plans[i].type, plans[i].shape) / 8);
        }
      }
    }
  }
}

TEST_CASE("gptq: zeros of 8 are 0x77777777 in the first format and 0x88888888 in the second", "[checkpoint]") {
  const QuantizationSettings settings{.bits = 4, .group_size = 0, .symmetric = true};
  const QuantizedWeights weights = random_weights(8, 8, settings, Dtype::f16, 1);
  CHECK(Tensors(kGptqFormat.store(kLayer, weights)).words("qzeros") == std::vector<std::uint32_t>{0x77777777});
  CHECK(Tensors(kGptqV2Format.store(kLayer, weights)).words("qzeros") == std::vector<std::uint32_t>{0x88888888});
}

TEST_CASE("gptq: a zero of 0 is refused in the first format and kept in the second", "[checkpoint]") {
  const QuantizationSettings settings{.bits = 4, .group_size = 0, .symmetric = false};
  QuantizedWeights weights = random_weights(8, 8, settings, Dtype::f16, 1);
  weights.zeros[3] = 0;
  CHECK_THROWS_WITH(kGptqFormat.store(kLayer, weights), contains_text("zero of 0") && contains_text(kLayer));
  const Tensors tensors(kGptqV2Format.store(kLayer, weights));
  check_equal(kGptqV2Format.load(kLayer, settings, tensors.source()), weights);
}

TEST_CASE("gptq: 0x7777f777 holds zeros of 8, and 16 at the fourth output", "[checkpoint]") {
  const QuantizationSettings settings{.bits = 4, .group_size = 0, .symmetric = false};
  Tensors tensors(kGptqFormat.store(kLayer, random_weights(8, 8, settings, Dtype::f16, 1)));
  const std::uint32_t word = 0x7777f777;
  std::memcpy(tensors.at("qzeros").data.data(), &word, sizeof word);
  const QuantizedWeights weights = kGptqFormat.load(kLayer, settings, tensors.source());
  CHECK(weights.zeros == std::vector<std::uint8_t>{8, 8, 8, 16, 8, 8, 8, 8});
  // What was read can be written again, but not in the second format, whose 4 bits end at 15.
  CHECK(Tensors(kGptqFormat.store(kLayer, weights)).words("qzeros") == std::vector<std::uint32_t>{word});
  CHECK_THROWS_WITH(kGptqV2Format.store(kLayer, weights), contains_text("16 does not fit"));
}

TEST_CASE("gptq: neighbouring inputs share a word, the first in the lowest bits", "[checkpoint]") {
  QuantizedWeights weights = random_weights(8, 8, {.bits = 4, .group_size = 0, .symmetric = false}, Dtype::f16, 1);
  for (std::int64_t i = 0; i < 8; ++i) weights.codes[static_cast<std::size_t>(16 + i)] = static_cast<std::int16_t>(i);
  Tensors tensors(kGptqFormat.store(kLayer, weights));
  CHECK(tensors.at("qweight").plan.shape == std::vector<std::uint64_t>{1, 8});
  CHECK(tensors.words("qweight")[2] == 0x76543210);
}

TEST_CASE("gptq: an order of inputs is kept in g_idx, and other formats refuse it", "[checkpoint]") {
  const QuantizationSettings settings{.bits = 4, .group_size = 8, .symmetric = true};
  QuantizedWeights weights = random_weights(8, 16, settings, Dtype::f16, 1);
  weights.group_index = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  Tensors tensors(kGptqFormat.store(kLayer, weights));
  check_equal(kGptqFormat.load(kLayer, settings, tensors.source()), weights);
  CHECK_THROWS_AS(kAwqFormat.store(kLayer, weights), QuantizationError);
  CHECK_THROWS_AS(kCompressedTensorsFormat.store(kLayer, weights), QuantizationError);

  tensors.erase("g_idx");  // older files have none
  CHECK(kGptqFormat.load(kLayer, settings, tensors.source()).group_index.empty());
}

TEST_CASE("awq: columns 0 to 7 pack to 0x75316420 and back", "[checkpoint]") {
  const QuantizationSettings settings{.bits = 4, .group_size = 0, .symmetric = false};
  QuantizedWeights weights = random_weights(8, 1, settings, Dtype::f16, 1);
  for (std::int64_t j = 0; j < 8; ++j) {
    weights.codes[static_cast<std::size_t>(j)] = static_cast<std::int16_t>(j);
    weights.zeros[static_cast<std::size_t>(j)] = static_cast<std::uint8_t>(j);
  }
  Tensors tensors(kAwqFormat.store(kLayer, weights));
  CHECK(tensors.words("qweight") == std::vector<std::uint32_t>{0x75316420});
  CHECK(tensors.words("qzeros") == std::vector<std::uint32_t>{0x75316420});
  check_equal(kAwqFormat.load(kLayer, settings, tensors.source()), weights);
}

TEST_CASE("compressed-tensors: codes -8 to 7 come back, and 20 inputs use 3 words", "[checkpoint]") {
  const QuantizationSettings settings{.bits = 4, .group_size = 0, .symmetric = true};
  QuantizedWeights weights = random_weights(1, 20, settings, Dtype::bf16, 1);
  for (std::size_t i = 0; i < 16; ++i) weights.codes[i] = static_cast<std::int16_t>(static_cast<int>(i) - 8);
  for (std::size_t i = 16; i < 20; ++i) weights.codes[i] = 7;
  Tensors tensors(kCompressedTensorsFormat.store(kLayer, weights));
  CHECK(tensors.at("weight_packed").plan.shape == std::vector<std::uint64_t>{1, 3});
  CHECK(tensors.words("weight_packed") == std::vector<std::uint32_t>{0x76543210, 0xfedcba98, 0x0000ffff});
  check_equal(kCompressedTensorsFormat.load(kLayer, settings, tensors.source()), weights);
}

TEST_CASE("formats: what cannot be stored is refused in a sentence", "[checkpoint]") {
  const auto sentence = [](const WeightFormat& format, std::int64_t n, std::int64_t k, QuantizationSettings settings) {
    return format.unsupported({.n = n, .k = k, .settings = settings}).value_or("supported");
  };
  CHECK(sentence(kGptqFormat, 16, 128, {.bits = 4, .group_size = 128}) == "supported");
  CHECK_THAT(sentence(kGptqFormat, 16, 128, {.bits = 3}), contains_text("4 or 8"));
  CHECK_THAT(sentence(kGptqFormat, 12, 128, {.bits = 4}), contains_text("multiple of 8, got 12"));
  CHECK_THAT(sentence(kGptqFormat, 16, 20, {.bits = 4, .group_size = 0}), contains_text("multiple of 8, got 20"));
  CHECK_THAT(sentence(kAwqFormat, 16, 128, {.bits = 8}), contains_text("4 bits alone"));
  CHECK_THAT(sentence(kCompressedTensorsFormat, 16, 100, {.group_size = 32}), contains_text("group size 32, got 100"));
  CHECK(sentence(kCompressedTensorsFormat, 3, 20, {.group_size = 0}) == "supported");

  QuantizedWeights scaled = random_weights(8, 16, {.group_size = 0}, Dtype::f16, 1);
  scaled.input_scales.assign(16, 2.0F);
  for (const WeightFormat* format : weight_formats())
    CHECK_THROWS_WITH(format->store(kLayer, scaled), contains_text("folded"));
}

TEST_CASE("formats: a tensor that is missing or has another type or shape is refused by its name", "[checkpoint]") {
  for (const WeightFormat* format : weight_formats()) {
    const QuantizationSettings settings{.bits = 4, .group_size = 16, .symmetric = false};
    const QuantizedWeights weights = random_weights(16, 32, settings, Dtype::f16, 1);
    for (const TensorPlan& plan : format->plan(kLayer, shape_of(weights))) {
      const std::string part = plan.name.substr(std::string(kLayer).size() + 1);
      CAPTURE(format->name, part);
      Tensors tensors(format->store(kLayer, weights));
      const auto load = [&] { return format->load(kLayer, settings, tensors.source()); };

      StoredTensor& tensor = tensors.at(part);
      tensor.plan.type = TensorType::f32;
      CHECK_THROWS_WITH(load(), contains_text(plan.name) && contains_text("F32"));
      tensor.plan = plan;
      tensor.plan.shape.push_back(1);
      CHECK_THROWS_AS(load(), QuantizationError);
      tensor.plan = plan;
      tensor.plan.shape.back() += 1;
      tensor.data.resize(*tensor_bits(plan.type, tensor.plan.shape) / 8);
      CHECK_THROWS_AS(load(), QuantizationError);
      tensor.plan.shape.assign(plan.shape.size(), 0);
      tensor.plan.shape.front() = std::uint64_t{1} << 62;
      tensor.data.clear();
      CHECK_THROWS_AS(load(), QuantizationError);
      tensors.erase(part);
      if (part != "g_idx") CHECK_THROWS_WITH(load(), contains_text(plan.name) && contains_text("missing"));
    }
  }
  const QuantizationSettings symmetric{.bits = 4, .group_size = 0, .symmetric = true};
  Tensors tensors(kGptqFormat.store(kLayer, random_weights(8, 8, symmetric, Dtype::f16, 1)));
  tensors.at("qzeros").data[0] = std::byte{0};
  CHECK_THROWS_WITH(kGptqFormat.load(kLayer, symmetric, tensors.source()), contains_text("8 as zero, got 1"));
}
