// Models in files: config.json, names and shapes as transformers writes them.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "harness/sweep/sweep.hpp"
#include "reference/checkpoint/decoder_config.hpp"
#include "reference/decoder/checkpoint_weights.hpp"
#include "reference/decoder/cpu_decoder.hpp"
#include "reference/decoder/seeded_weights.hpp"
#include "tests/reference/decoder/model_folder.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

using Values = std::vector<std::uint16_t>;

TestTensor& named(std::vector<TestTensor>& tensors, const std::string& name) {
  for (TestTensor& tensor : tensors)
    if (tensor.plan.name == name) return tensor;
  throw std::logic_error("no tensor " + name);
}

std::vector<float> logits_of(const DecoderWeights& weights) {
  const CpuDecoder decoder(weights, {}, 1);
  CpuKvCache cache(weights.shape(), 4);
  return decoder.step(std::vector<std::int32_t>{3, 1, 400, 7}, cache);
}

TEST_CASE("checkpoint: a model in files decodes as its weights do in memory, in every family",
          "[decoder][checkpoint]") {
  for (const char* type : {"llama", "mistral", "qwen2", "qwen3"}) {
    const DecoderShape shape = tiny_of_family(type);
    const ScratchFolder folder;
    const CheckpointWeights weights(write_model(folder, shape, type));
    CHECK(weights.shape() == shape);
    CHECK(logits_of(weights) == logits_of(SeededWeights(shape, 4)));
  }
}

TEST_CASE("checkpoint: BF16 and F32 weights are rounded to f16, and what f16 cannot hold is refused",
          "[decoder][checkpoint]") {
  const DecoderShape shape = decoder_shape("tiny");
  const ScratchFolder folder;
  std::vector<float> gains(256, 1.0F);
  gains[3] = 1.00030517578125F;  // 1 + 2^-12 + 2^-14: rounds to 1
  std::vector<std::uint16_t> bf16(256, bf16_bits(0.5F));
  const CheckpointWeights weights(write_model(folder, shape, "llama", [&](std::vector<TestTensor>& tensors) {
    named(tensors, "model.norm.weight") = test_tensor("model.norm.weight", TensorType::f32, {256}, gains);
    const std::string other = "model.layers.1.input_layernorm.weight";
    named(tensors, other) = test_tensor(other, TensorType::bf16, {256}, bf16);
    const std::string large = "model.layers.0.input_layernorm.weight";
    named(tensors, large) = test_tensor(large, TensorType::bf16, {256}, Values(256, bf16_bits(1e6F)));
  }));
  Values row(256);
  weights.read({DecoderWeight::final_norm, 0}, 0, 1, row);
  CHECK(row == Values(256, f16_bits(1)));
  weights.read({DecoderWeight::attention_norm, 1}, 0, 1, row);
  CHECK(row == Values(256, f16_bits(0.5F)));
  const CheckpointError error = checkpoint_error([&] { weights.read({DecoderWeight::attention_norm, 0}, 0, 1, row); });
  CHECK(error.fault() == CheckpointFault::content);
  CHECK(error.tensor() == "model.layers.0.input_layernorm.weight");
}

TEST_CASE("checkpoint: a tensor that is missing or of another shape is named", "[decoder][checkpoint]") {
  const DecoderShape shape = decoder_shape("tiny");
  const ScratchFolder missing;
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  CHECK(checkpoint_error([&] {
          CheckpointWeights weights(write_model(missing, shape, "llama", [&](std::vector<TestTensor>& tensors) {
            std::erase_if(tensors, [&](const TestTensor& tensor) { return tensor.plan.name == name; });
          }));
        }).fault() == CheckpointFault::missing);
  const ScratchFolder turned;
  const CheckpointError error = checkpoint_error([&] {
    CheckpointWeights weights(write_model(turned, shape, "llama", [&](std::vector<TestTensor>& tensors) {
      named(tensors, name).plan.shape = {256, 512};
    }));
  });
  CHECK(error.tensor() == name);
  CHECK_THAT(error.what(), Catch::Contains("its shape must be [512, 256], as config.json says, got [256, 512]"));
}

std::string refused(const std::string& type, const std::string& more) {
  const ScratchFolder folder;
  write_file(folder, "config.json", config_of(decoder_shape("tiny"), type, more));
  try {
    read_decoder_config(folder / "");
  } catch (const ConfigError& error) {
    const std::string what = error.what();
    return what.substr(what.find(": ") + 2);
  }
  return "accepted";
}

TEST_CASE("checkpoint: what this decoder cannot compute is refused by the key that asks for it",
          "[decoder][checkpoint]") {
  CHECK(refused("llama", "") == "accepted");
  CHECK(refused("gemma2", "") == "model_type must be llama, mistral, qwen2 or qwen3, got 'gemma2'");
  CHECK(refused("llama", "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0}, ") ==
        "rope_scaling: rope_type must be default, got 'llama3'");
  CHECK(refused("llama", "\"attention_bias\": true, ") == "attention_bias must be false for a model of type llama");
  CHECK(refused("llama", "\"quantization_config\": {}, ") ==
        "has a quantization_config: weights must be F16, BF16 or F32");
  const ScratchFolder folder;
  write_file(folder, "config.json", R"({"model_type": "llama"})");
  CHECK_THROWS_WITH(read_decoder_config(folder / ""),
                    Catch::Contains("num_hidden_layers must be an integer of at least 1"));
}

TEST_CASE("checkpoint: theta stands in rope_parameters too, and a window bounds the length", "[decoder][checkpoint]") {
  const auto read = [](const std::string& type, const std::string& more) {
    const ScratchFolder folder;
    write_file(folder, "config.json", config_of(decoder_shape("tiny"), type, more));
    return read_decoder_config(folder / "");
  };
  CHECK(read("llama", "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 500000.0}, ").rope_theta ==
        5e5);
  CHECK(read("mistral", "\"sliding_window\": 512, ").max_length == 512);
  CHECK(read("mistral", "\"sliding_window\": null, ").max_length == 2048);
  CHECK(read("qwen2", "\"sliding_window\": 512, \"use_sliding_window\": false, ").max_length == 2048);
}

}  // namespace
}  // namespace inferometer::test
