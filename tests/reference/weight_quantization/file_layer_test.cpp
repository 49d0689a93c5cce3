// A tensor of a safetensors file, with its activations, as the layer of the operator.
#include "reference/weight_quantization/file_layer.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "harness/operator/nearest_word.hpp"
#include "harness/operator/registry.hpp"
#include "reference/weight_quantization/gptq.hpp"
#include "reference/weight_quantization/result_tensor.hpp"
#include "tests/reference/checkpoint/checkpoint_files.hpp"
#include "tests/reference/weight_quantization/layers.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

using Problem = WeightQuantizationProblem;

constexpr const char* kLayer = "model.layers.0.mlp.up_proj";
constexpr std::int64_t kOutputs = 10;
constexpr std::int64_t kInputs = 64;
constexpr std::int64_t kTokens = 300;

std::vector<float> floats(const RowMajorF& matrix) { return {matrix.data(), matrix.data() + matrix.size()}; }

// A model of one layer, and what enters it.
class Files {
  ScratchFolder folder_;  // first: the paths are in it

 public:
  RowMajorF w = random_weights(4, kOutputs, kInputs);
  RowMajorF x = correlated_activations(4, kTokens, kInputs);
  std::string model = folder_ / "model.safetensors";
  std::string activations = folder_ / "activations.safetensors";

  Files() { write(); }

  void write() const {
    write_tensors(model, {test_tensor(std::string(kLayer) + ".weight", TensorType::f32, {kOutputs, kInputs}, floats(w)),
                          test_tensor("model.norm.weight", TensorType::f32, {kInputs}, std::vector<float>(kInputs)),
                          test_tensor("ids", TensorType::i32, {2, 2}, std::vector<std::int32_t>(4))});
    const auto tokens = static_cast<std::uint64_t>(x.rows());
    write_tensors(activations, {test_tensor(kLayer, TensorType::f32, {tokens, kInputs}, floats(x)),
                                test_tensor("ids", TensorType::f32, {tokens, 2}, std::vector<float>(2 * tokens))});
  }

  Fields fields(const std::string& tensor = std::string(kLayer) + ".weight") const {
    return {{"source", model},
            {"tensor", tensor},
            {"activations", activations},
            {"group_size", std::int64_t{32}},
            {"calibration_tokens", std::int64_t{250}},
            {"held_out_tokens", std::int64_t{50}}};
  }

  ScratchFolder& folder() { return folder_; }
};

Fields with(Fields fields, const std::string& name, const Value& value) {
  for (auto& [field, old] : fields)
    if (field == name) {
      old = value;
      return fields;
    }
  fields.emplace_back(name, value);
  return fields;
}

Problem parse(const Fields& fields) {
  return *static_cast<const Problem*>(find_operator("weight_quantization")->parse(fields).get());
}

std::string refused(const Fields& fields) {
  try {
    parse(fields);
  } catch (const ProblemError& error) {
    return error.field() + ": " + error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("weight_quantization: a layer from files has the sizes, weights and activations of its tensors",
          "[weight_quantization][checkpoint]") {
  const Files files;
  const Problem p = parse(files.fields());
  CHECK(p.n == kOutputs);
  CHECK(p.k == kInputs);
  CHECK(layer_weights(p, 2).values == floats(files.w));
  CHECK(calibration_activations(p, 2).values == floats(files.x.topRows(250)));
  CHECK(held_out_activations(p, 2).values == floats(files.x.bottomRows(50)));
}

TEST_CASE("weight_quantization: methods run on a layer from files, and their audits hold",
          "[weight_quantization][checkpoint]") {
  const Files files;
  for (const char* variant : {"cpu.rtn", "cpu.gptq", "cpu.awq"}) {
    const VariantRun run = run_variant("weight_quantization", variant, files.fields());
    INFO(variant << " " << run.check.reason);
    REQUIRE(run.check.passed);
    if (std::string(variant) != "cpu.gptq") continue;
    const std::vector<std::byte>& raw = run.raw.at("result");
    const MethodResult made = read_result(
        parse(files.fields()), {reinterpret_cast<const std::int32_t*>(raw.data()), raw.size() / sizeof(std::int32_t)});
    const RowMajorF seen = files.x.topRows(250);
    CHECK(made.quantized.weights.codes ==
          quantize_gptq(view(files.w), calibrate(view(seen), 1), {.grid = {.group_size = 32}}, 1).weights.codes);
  }
}

TEST_CASE("weight_quantization: what is wrong with files is said with file, tensor and reason",
          "[weight_quantization][checkpoint]") {
  Files files;
  const auto says = [](const Fields& fields, const std::vector<std::string>& parts) {
    const std::string sentence = refused(fields);
    for (const std::string& part : parts) CHECK_THAT(sentence, contains_text(part));
  };
  says(files.fields("model.norm.weight"), {"source: ", files.model, "'model.norm.weight'", "must be a matrix"});
  says(files.fields("ids"), {files.model, "'ids'", "must be a matrix of F16, BF16 or F32"});
  says(files.fields("absent"), {files.model, "'absent'", "is not there"});
  says(files.fields(""), {"tensor: tensor must name the weights in ", files.model});
  says(with(files.fields(), "activations", std::string()), {"activations: activations must name a safetensors file"});
  says(with(files.fields(), "activations", files.folder() / "none.safetensors"), {"none.safetensors", "No such file"});
  says(with(files.fields(), "activations", files.model), {files.model, in_quotes(kLayer), "is not there"});
  says(with(files.fields(), "source", files.folder() / "none.safetensors"), {"none.safetensors", "No such file"});
  says(with(files.fields(), "source", std::string("synthetik")), {"model's folder, or one of", "got 'synthetik'"});
  says(with(files.fields(), "source", std::string("synthetic")), {"tensor must be empty for a synthetic layer"});
  says(with(files.fields(), "calibration_tokens", std::int64_t{251}),
       {files.activations, "at least calibration_tokens + held_out_tokens = 301 rows, got 300"});
  write_text(files.activations, "short");
  says(files.fields(), {files.activations, "header"});

  files.x = correlated_activations(4, kTokens, kInputs - 1);
  write_tensors(files.activations, {test_tensor(kLayer, TensorType::f32, {kTokens, kInputs - 1}, floats(files.x))});
  says(files.fields(), {files.activations, in_quotes(kLayer), "must have 64 columns", "got 63"});
}

TEST_CASE("weight_quantization: a value in a file that is not finite is found by its place",
          "[weight_quantization][checkpoint]") {
  Files files;
  files.w(3, 17) = std::numeric_limits<float>::quiet_NaN();
  files.x(299, 5) = std::numeric_limits<float>::infinity();
  files.write();
  const Problem p = parse(files.fields());
  CHECK_THROWS_WITH(layer_weights(p, 2),
                    contains_text(files.model) && contains_text(".weight'") && contains_text("[3][17] must be finite"));
  CHECK_THROWS_WITH(held_out_activations(p, 2),
                    contains_text(files.activations) && contains_text("[299][5] must be finite, got inf"));
  CHECK_NOTHROW(calibration_activations(p, 2));
  CHECK_THROWS_WITH(run_variant("weight_quantization", "cpu.rtn", files.fields()), contains_text("[3][17]"));
}
