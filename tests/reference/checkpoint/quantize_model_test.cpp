#include "reference/checkpoint/quantize_model.hpp"

#include <filesystem>
#include <limits>
#include <random>

#include "harness/sweep/sweep.hpp"
#include "reference/checkpoint/tensor_values.hpp"
#include "reference/weight_quantization/rounding.hpp"
#include "tests/reference/checkpoint/checkpoint_files.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kHidden = 64;
constexpr std::uint64_t kTokens = 512;
const std::string kBlock = "model.layers.0.";

std::vector<std::uint16_t> random_halves(std::uint64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> halves(count);
  for (auto& half : halves) half = f16_bits(normal(random));
  return halves;
}

TestTensor half_tensor(const std::string& name, std::vector<std::uint64_t> shape, unsigned seed) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) count *= extent;
  return test_tensor(name, TensorType::f16, std::move(shape), random_halves(count, seed));
}

std::vector<TestTensor> llama_block() {
  return {half_tensor("model.embed_tokens.weight", {32, kHidden}, 1),
          half_tensor(kBlock + "input_layernorm.weight", {kHidden}, 2),
          half_tensor(kBlock + "self_attn.q_proj.weight", {64, kHidden}, 3),
          half_tensor(kBlock + "self_attn.k_proj.weight", {16, kHidden}, 4),
          half_tensor(kBlock + "self_attn.v_proj.weight", {16, kHidden}, 5),
          half_tensor(kBlock + "self_attn.v_proj.bias", {16}, 6),
          half_tensor(kBlock + "self_attn.o_proj.weight", {kHidden, 64}, 7),
          half_tensor("lm_head.weight", {32, kHidden}, 8)};
}

// Inputs that go up and down together, so that GPTQ has something to make up with, and some of them far greater than
// the others: AWQ scales those.
TestTensor activations(const std::string& layer, unsigned seed) {
  std::vector<std::uint16_t> halves = random_halves(kTokens * kHidden, seed);
  const std::vector<std::uint16_t> common = random_halves(kTokens, seed + 100);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const float value = f16_value(halves[i]) + 2 * f16_value(common[i / kHidden]);
    halves[i] = f16_bits(i % kHidden < 4 ? 10 * value : value);
  }
  return test_tensor(layer, TensorType::f16, {kTokens, kHidden}, halves);
}

void write_model(const ScratchFolder& folder, const std::vector<TestTensor>& tensors) {
  fs::create_directory(folder / "model");
  write_tensors(folder / "model/model.safetensors", tensors);
  write_text(folder / "model/config.json", R"({"model_type": "llama", "hidden_size": 64})");
  write_text(folder / "model/tokenizer.json", "{}");
  write_tensors(folder / "calibration.safetensors",
                {activations(kBlock + "self_attn.q_proj", 11), activations(kBlock + "self_attn.o_proj", 12)});
}

QuantizeRequest request(const ScratchFolder& folder, QuantizationMethod method, const WeightFormat& format) {
  QuantizeRequest made;
  made.input = folder / "model";
  made.output = folder / "out";
  made.method = method;
  made.settings = {.bits = 4, .group_size = 32, .symmetric = true};
  made.format = &format;
  if (method != QuantizationMethod::rtn) made.calibration = folder / "calibration.safetensors";
  return made;
}

bool go_on(const std::vector<Json>& /*layers*/) { return true; }

Json quantize(const QuantizeRequest& made) { return ModelQuantization(made).run(&go_on); }

QuantizedWeights load(const std::string& folder, const std::string& layer) {
  const std::optional<QuantizationConfig> config = read_quantization_config(folder);
  REQUIRE(config);
  const ModelFiles model(folder);
  return config->format->load(layer, config->settings, [&](const std::string& name) -> std::optional<TensorView> {
    if (!model.has(name)) return std::nullopt;
    return model.tensor(name);
  });
}

std::vector<float> floats(const std::string& folder, const std::string& name) {
  const ModelFiles model(folder);
  const TensorView tensor = model.tensor(name);
  return float_values(tensor, 0, tensor.data.size() * 8 / static_cast<std::uint64_t>(type_bits(tensor.type)));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("quantize: what a folder holds afterwards loads, and is what the quantiser said", "[checkpoint]") {
  for (const WeightFormat* format : weight_formats()) {
    CAPTURE(format->name);
    const ScratchFolder folder;
    write_model(folder, llama_block());
    const Json report = quantize(request(folder, QuantizationMethod::rtn, *format));
    CHECK(report.at("layers").size() == 4);
    CHECK(report.at("kept_layers") == Json::array({"lm_head"}));

    const std::string out = folder / "out";
    for (const char* part : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      const std::string layer = kBlock + "self_attn." + part;
      const std::vector<float> weights = floats(folder / "model", layer + ".weight");
      const FloatMatrix matrix{
          .data = weights.data(), .rows = static_cast<std::int64_t>(weights.size() / kHidden), .columns = kHidden};
      const QuantizedWeights expected = quantize_rounding(matrix, {.group_size = 32}, 1).weights;
      const QuantizedWeights loaded = load(out, layer);
      REQUIRE(loaded.n == expected.n);
      for (std::int64_t j = 0; j < expected.n; ++j)
        for (std::int64_t i = 0; i < expected.k; ++i) REQUIRE(loaded.weight(j, i) == expected.weight(j, i));
    }
    for (const char* name : {"model.embed_tokens.weight", "lm_head.weight", "model.layers.0.self_attn.v_proj.bias",
                             "model.layers.0.input_layernorm.weight"})
      CHECK(floats(out, name) == floats(folder / "model", name));
    CHECK_FALSE(ModelFiles(out).has(kBlock + "self_attn.q_proj.weight"));
    CHECK(read_json(out + "/config.json").at("hidden_size") == 64);
    CHECK(read_json(out + "/quantization_report.json") == report);
    CHECK(fs::exists(out + "/tokenizer.json"));
    CHECK_FALSE(fs::exists(out + "/model.safetensors.journal"));
  }
}

TEST_CASE("quantize: gptq and awq have less output error than rounding on inputs with outliers", "[checkpoint]") {
  const ScratchFolder folder;
  write_model(folder, llama_block());
  const auto output_error = [&](QuantizationMethod method, const char* out) {
    QuantizeRequest made = request(folder, method, kCompressedTensorsFormat);
    made.output = folder / out;
    made.calibration = folder / "calibration.safetensors";
    return quantize(made).at("layers").at(0).at("output_rel_error").get<double>();
  };
  const double rounding = output_error(QuantizationMethod::rtn, "rtn");
  CHECK(rounding > 0);
  CHECK(output_error(QuantizationMethod::gptq, "gptq") < rounding);
  CHECK(output_error(QuantizationMethod::awq, "awq") < rounding);
}

TEST_CASE("quantize: gptq warns where rounding has less output error on tokens that it has not seen", "[checkpoint]") {
  const ScratchFolder folder;
  write_model(folder, llama_block());
  const auto warnings = [&](const char* out) {
    QuantizeRequest made = request(folder, QuantizationMethod::gptq, kGptqFormat);
    made.output = folder / out;
    return quantize(made).at("layers").at(0).at("warnings");
  };
  CHECK(warnings("correlated").empty());
  // Inputs that share nothing, and hardly more tokens than inputs: H is not diagonal by chance alone.
  write_tensors(folder / "calibration.safetensors", {half_tensor(kBlock + "self_attn.q_proj", {80, kHidden}, 11),
                                                     half_tensor(kBlock + "self_attn.o_proj", {80, kHidden}, 12)});
  const Json by_chance = warnings("independent");
  REQUIRE(by_chance.size() == 1);
  CHECK_THAT(by_chance.at(0).get<std::string>(),
             contains_text("on tokens held out, its outputs err by") && contains_text("learnt from 70 tokens"));
}

TEST_CASE("quantize: awq's scales go into the norm before the layers, and nothing else changes", "[checkpoint]") {
  const ScratchFolder folder;
  write_model(folder, llama_block());
  const Json report = quantize(request(folder, QuantizationMethod::awq, kAwqFormat));
  const std::string norm = kBlock + "input_layernorm.weight";
  const std::vector<float> before = floats(folder / "model", norm);
  const std::vector<float> after = floats(folder / "out", norm);
  CHECK(before != after);
  // What the layer makes of a normalised input: its weights times the norm's. The norm is rounded to F16 once more.
  const std::string layer = kBlock + "self_attn.q_proj";
  const QuantizedWeights loaded = load(folder / "out", layer);
  const std::vector<float> weights = floats(folder / "model", layer + ".weight");
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t input = i % kHidden;
    const double was = static_cast<double>(weights[i]);
    const double scale = static_cast<double>(before[input]) / static_cast<double>(after[input]);
    const double is = loaded.weight(static_cast<std::int64_t>(i / kHidden), static_cast<std::int64_t>(input)) / scale;
    error += (is - was) * (is - was);
    size += was * was;
  }
  // Each scale is off by at most the rounding of the norm, 2^-11, which changes the relative error by no more.
  const double reported = report.at("layers").at(0).at("weight_rel_error").get<double>();
  CHECK(std::abs(std::sqrt(error / size) - reported) < 0x1p-10);
}

TEST_CASE("quantize: awq leaves the norm alone when a layer after it is not quantised", "[checkpoint]") {
  const ScratchFolder folder;
  write_model(folder, llama_block());
  QuantizeRequest made = request(folder, QuantizationMethod::awq, kAwqFormat);
  made.layers = {"*.q_proj", "*.k_proj"};
  quantize(made);
  const std::string norm = kBlock + "input_layernorm.weight";
  CHECK(floats(folder / "out", norm) == floats(folder / "model", norm));
  CHECK(read_json(folder / "out/config.json").at("quantization_config").at("modules_to_not_convert").size() == 3);
}

TEST_CASE("quantize: an interrupted run is gone on with, to the same bytes", "[checkpoint]") {
  const ScratchFolder folder;
  write_model(folder, llama_block());
  QuantizeRequest made = request(folder, QuantizationMethod::gptq, kGptqFormat);
  quantize(made);
  const std::string whole = read_text(folder / "out/model.safetensors");

  made.output = folder / "again";
  CHECK(ModelQuantization(made).run([](const std::vector<Json>&) { return false; }).is_null());
  CHECK(names_in(made.output) == std::vector<std::string>{"model.safetensors.journal", "model.safetensors.partial"});
  CHECK_THROWS_WITH(ModelQuantization(made), contains_text("--resume"));
  made.resume = true;
  QuantizeRequest other = made;
  other.settings.group_size = 64;
  CHECK_THROWS_AS(ModelQuantization(other).run(&go_on), std::runtime_error);
  other = made;
  other.method = QuantizationMethod::rtn;  // whose tensors have the same sizes
  CHECK_THROWS_WITH(ModelQuantization(other).run(&go_on),
                    contains_text("is of another model, calibration or settings"));
  std::size_t calls = 0;
  const Json report = ModelQuantization(made).run([&](const std::vector<Json>&) { return ++calls > 0; });
  CHECK(calls == 2);
  CHECK(report.at("layers").size() == 4);
  CHECK(read_text(folder / "again/model.safetensors") == whole);
  CHECK_THROWS_WITH(ModelQuantization(made), contains_text("is there already"));
}

TEST_CASE("quantize: a journal that is none is refused in a sentence, whatever it holds", "[checkpoint]") {
  const ScratchFolder folder;
  write_model(folder, llama_block());
  QuantizeRequest made = request(folder, QuantizationMethod::rtn, kGptqFormat);
  CHECK(ModelQuantization(made).run([](const std::vector<Json>&) { return false; }).is_null());
  made.resume = true;
  for (const char* const line : {"[]", "7", "{}", R"({"schema": 7})", R"({"schema": "another"})"}) {
    INFO(line);
    write_text(folder / "out/model.safetensors.journal", line + std::string("\n"));
    CHECK_THROWS_WITH(ModelQuantization(made).run(&go_on), contains_text("is no journal of a quantisation"));
  }
}

TEST_CASE("quantize: of two into one folder at once the second is refused, and leaves the first its journal",
          "[checkpoint]") {
  const ScratchFolder folder;
  write_model(folder, llama_block());
  const QuantizeRequest made = request(folder, QuantizationMethod::gptq, kGptqFormat);
  ModelQuantization second(made);  // looks at the folder while the first has not begun yet
  const Json interrupted = ModelQuantization(made).run([&](const std::vector<Json>&) {
    CHECK_THROWS_WITH(second.run(&go_on), contains_text("another program is writing it"));
    return false;
  });
  CHECK(interrupted.is_null());
  QuantizeRequest rest = made;
  rest.resume = true;
  CHECK(quantize(rest).at("layers").size() == 4);
}

TEST_CASE("quantize: bad input is refused by its name before anything is written", "[checkpoint]") {
  const auto refused = [](const std::vector<TestTensor>& tensors, const QuantizationMethod method,
                          const WeightFormat& format, const auto& change) {
    const ScratchFolder folder;
    write_model(folder, tensors);
    QuantizeRequest made = request(folder, method, format);
    change(folder, made);
    std::string sentence;
    try {
      ModelQuantization quantization(made);
    } catch (const std::exception& error) {
      sentence = error.what();
    }
    CHECK_FALSE(fs::exists(folder / "out"));
    return sentence;
  };
  const auto nothing = [](const ScratchFolder&, QuantizeRequest&) {};
  using Method = QuantizationMethod;

  std::vector<TestTensor> with_nan = llama_block();
  const std::uint16_t nan = 0x7e00;
  std::memcpy(with_nan[2].data.data() + 2 * (3 * kHidden + 17), &nan, sizeof nan);
  CHECK_THAT(refused(with_nan, Method::rtn, kAwqFormat, nothing), contains_text("q_proj.weight[3][17] must be finite"));

  std::vector<TestTensor> odd = llama_block();
  odd[3] = half_tensor(kBlock + "self_attn.k_proj.weight", {12, kHidden}, 4);
  CHECK_THAT(refused(odd, Method::rtn, kGptqFormat, nothing),
             contains_text("k_proj.weight") && contains_text("multiple of 8, got 12"));

  const auto without_calibration = [](const ScratchFolder&, QuantizeRequest& made) { made.calibration.clear(); };
  CHECK_THAT(refused(llama_block(), Method::gptq, kGptqFormat, without_calibration),
             contains_text("--calibration FILE"));
  CHECK_THAT(refused(llama_block(), Method::awq, kGptqFormat, without_calibration),
             contains_text("--calibration FILE"));

  const auto calibration_of = [](const TestTensor& tensor) {
    return [tensor](const ScratchFolder& folder, QuantizeRequest&) {
      write_tensors(folder / "calibration.safetensors", {tensor});
    };
  };
  CHECK_THAT(
      refused(llama_block(), Method::gptq, kGptqFormat, calibration_of(activations(kBlock + "self_attn.q_proj", 1))),
      contains_text("no tensor 'model.layers.0.self_attn.o_proj'"));
  CHECK_THAT(refused(llama_block(), Method::gptq, kGptqFormat,
                     calibration_of(half_tensor(kBlock + "self_attn.q_proj", {kTokens, 32}, 1))),
             contains_text("must be [tokens, 64]"));

  const auto config = [](const char* text) {
    return [text](const ScratchFolder& folder, QuantizeRequest&) { write_text(folder / "model/config.json", text); };
  };
  CHECK_THAT(refused(llama_block(), Method::rtn, kGptqFormat, config(R"({"quantization_config": {"bits": 4}})")),
             contains_text("quantised already"));
  CHECK_THAT(refused(llama_block(), Method::rtn, kGptqFormat, config("[")), contains_text("config.json"));
  CHECK_THAT(refused(llama_block(), Method::rtn, kGptqFormat,
                     [](const ScratchFolder&, QuantizeRequest& made) { made.layers = {"*.q_prj"}; }),
             contains_text("matches no linear layer"));
  CHECK_THAT(refused({half_tensor("model.norm.weight", {8}, 1)}, Method::rtn, kGptqFormat, nothing),
             contains_text("no linear layer"));
}

TEST_CASE("quantize: a layer that fails on the way leaves nothing behind", "[checkpoint]") {
  const ScratchFolder folder;
  // All weights above 0: the zero of an asymmetric grid is 0, which the first GPTQ format cannot hold.
  std::vector<TestTensor> tensors = llama_block();
  tensors[6] = test_tensor(kBlock + "self_attn.o_proj.weight", TensorType::f16, {kHidden, 64},
                           std::vector<std::uint16_t>(kHidden * 64, 0x3c00));
  write_model(folder, tensors);
  QuantizeRequest made = request(folder, QuantizationMethod::rtn, kGptqFormat);
  made.settings.symmetric = false;
  CHECK_THROWS_WITH(quantize(made), contains_text("o_proj") && contains_text("zero of 0"));
  CHECK_FALSE(fs::exists(folder / "out"));
}
