#include "reference/checkpoint/quantization_config.hpp"

#include "harness/sweep/sweep.hpp"
#include "tests/reference/checkpoint/checkpoint_files.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

std::string refusal(const std::string& config) {
  const ScratchFolder folder;
  write_text(folder / "config.json", config);
  try {
    read_quantization_config(folder / ".");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "read";
}

std::string with(const std::string& fields) { return R"({"quantization_config": {)" + fields + "}}"; }

}  // namespace

TEST_CASE("quantisation config: what is written is read back", "[checkpoint]") {
  for (const WeightFormat* format : weight_formats()) {
    for (const std::int64_t group_size : {0, 128}) {
      for (const bool symmetric : {true, false}) {
        CAPTURE(format->name, group_size, symmetric);
        const QuantizationConfig config{.format = format,
                                        .settings = {.bits = 4, .group_size = group_size, .symmetric = symmetric},
                                        .kept = {"lm_head", "model.layers.0.mlp.up_proj"}};
        const ScratchFolder folder;
        for (const TextFile& file : quantization_config_files(config, R"({"model_type": "llama"})", "config.json"))
          write_text(folder / file.name, file.text);
        CHECK(read_json(folder / "config.json").at("model_type") == "llama");
        // Older loaders read the format's own file; compressed-tensors has none.
        for (const bool own_file : {false, true}) {
          if (own_file && format == &kCompressedTensorsFormat) continue;
          if (own_file) write_text(folder / "config.json", "{}");
          const std::optional<QuantizationConfig> read = read_quantization_config(folder / ".");
          REQUIRE(read);
          CHECK(read->format == format);
          CHECK(read->settings.bits == 4);
          CHECK(read->settings.group_size == group_size);
          CHECK(read->settings.symmetric == (symmetric && format != &kAwqFormat));
        }
      }
    }
  }
  const ScratchFolder none;
  CHECK_FALSE(read_quantization_config(none / "."));
}

TEST_CASE("quantisation config: the fields are those that loaders ask for", "[checkpoint]") {
  const auto written = [](const WeightFormat& format) {
    const QuantizationConfig config{.format = &format, .settings = {}, .kept = {"lm_head", "a.b"}};
    return Json::parse(quantization_config_files(config, "", "config.json").front().text).at("quantization_config");
  };
  const Json gptq = written(kGptqV2Format);
  CHECK(gptq.at("quant_method") == "gptq");
  CHECK(gptq.at("checkpoint_format") == "gptq_v2");
  CHECK(gptq.at("desc_act") == false);
  CHECK(gptq.at("sym") == true);
  CHECK(gptq.at("dynamic") == Json{{R"(-:^a\.b$)", Json::object()}});
  const Json awq = written(kAwqFormat);
  CHECK(awq.at("version") == "gemm");
  CHECK(awq.at("zero_point") == true);
  CHECK(awq.at("modules_to_not_convert") == Json::array({"lm_head", "a.b"}));
  const Json compressed = written(kCompressedTensorsFormat);
  CHECK(compressed.at("format") == "pack-quantized");
  CHECK(compressed.at("ignore") == Json::array({"lm_head", "a.b"}));
  const Json& group = compressed.at("config_groups").at("group_0");
  CHECK(group.at("targets") == Json::array({"Linear"}));
  CHECK(group.at("weights").at("strategy") == "group");
  CHECK(group.at("weights").at("group_size") == 128);
}

TEST_CASE("quantisation config: what cannot be read here is refused in a sentence", "[checkpoint]") {
  const std::string gptq = R"("quant_method": "gptq", "group_size": 128)";
  CHECK(refusal(with(gptq + R"(, "bits": 4)")) == "read");
  CHECK_THAT(refusal(with(gptq + R"(, "bits": 3)")), contains_text("4 or 8 bits, got 3"));
  CHECK_THAT(refusal(with(gptq)), contains_text("bits must be an integer"));
  CHECK_THAT(refusal(with(gptq + R"(, "bits": 4, "sym": 1)")), contains_text("sym must be true or false"));
  CHECK_THAT(refusal(with(gptq + R"(, "bits": 4, "checkpoint_format": "marlin")")), contains_text("'marlin'"));
  CHECK_THAT(refusal(with(R"("quant_method": "gptq", "bits": 4, "group_size": 0)")), contains_text("group size"));
  CHECK_THAT(refusal(with(R"("quant_method": "bitsandbytes")")), contains_text("'bitsandbytes'"));
  CHECK_THAT(refusal(with(R"("quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv")")),
             contains_text("gemm"));
  CHECK_THAT(refusal(with(R"("quant_method": "compressed-tensors", "format": "float-quantized")")),
             contains_text("pack-quantized"));
  CHECK_THAT(refusal(with(R"("quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {})")),
             contains_text("one group, got 0"));
  CHECK_THAT(refusal(R"({"quantization_config": 1})"), contains_text("must be an object"));
  CHECK_THAT(refusal("[]"), contains_text("must be a JSON object"));
}
