#include "reference/checkpoint/quantization_config.hpp"

#include <filesystem>
#include <system_error>

#include "harness/operator/nearest_word.hpp"
#include "harness/results/json.hpp"
#include "harness/sweep/json_reader.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;

std::int64_t group_or_whole(std::int64_t group_size) { return group_size == 0 ? -1 : group_size; }

// A regular expression that matches the text itself.
std::string escaped(const std::string& text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view(".^$*+?()[]{}|\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

// Fields as GPTQModel writes them (gptqmodel/quantization/config.py: QuantizeConfig) and vLLM reads them
// (quantization/gptq.py and gptq_marlin.py: from_config); "-:" before a pattern in `dynamic` leaves layers out.
Json gptq_config(const QuantizationConfig& config) {
  Json json{{"quant_method", "gptq"},
            {"checkpoint_format", config.format->name},
            {"bits", config.settings.bits},
            {"group_size", group_or_whole(config.settings.group_size)},
            {"sym", config.settings.symmetric},
            {"desc_act", config.act_order},
            {"lm_head", false}};
  Json left_out = Json::object();
  for (const std::string& layer : config.kept)
    if (layer != "lm_head") left_out["-:^" + escaped(layer) + "$"] = Json::object();
  if (!left_out.empty()) json["dynamic"] = left_out;
  return json;
}

// As AutoAWQ writes them (awq/models/_config.py: AwqConfig.to_transformers_dict). Zeros are always there, if all 8.
Json awq_config(const QuantizationConfig& config) {
  Json json{{"quant_method", "awq"},
            {"bits", config.settings.bits},
            {"group_size", group_or_whole(config.settings.group_size)},
            {"zero_point", true},
            {"version", "gemm"}};
  json["modules_to_not_convert"] = config.kept.empty() ? Json(nullptr) : Json(config.kept);
  return json;
}

// As compressed-tensors writes them (quantization/quant_config.py: QuantizationConfig, quant_args.py:
// QuantizationArgs).
Json compressed_tensors_config(const QuantizationConfig& config) {
  const bool whole = config.settings.group_size == 0;
  const Json weights{{"num_bits", config.settings.bits},
                     {"type", "int"},
                     {"symmetric", config.settings.symmetric},
                     {"strategy", whole ? "channel" : "group"},
                     {"group_size", whole ? Json(nullptr) : Json(config.settings.group_size)},
                     {"dynamic", false}};
  Json group{{"targets", Json::array({"Linear"})}};
  group["weights"] = weights;
  group["input_activations"] = nullptr;
  group["output_activations"] = nullptr;
  Json json{{"quant_method", "compressed-tensors"},
            {"format", "pack-quantized"},
            {"quantization_status", "compressed"},
            {"kv_cache_scheme", nullptr}};
  json["config_groups"]["group_0"] = group;
  json["ignore"] = config.kept;
  return json;
}

class ConfigReader {
 public:
  ConfigReader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  const Json* member(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  std::int64_t integer(const char* name, const char* older_name = nullptr) const {
    const Json* value = member(name);
    if (value == nullptr && older_name != nullptr) value = member(older_name);
    if (value == nullptr || !value->is_number_integer()) refuse(std::string(name) + " must be an integer");
    return value->get<std::int64_t>();
  }
  bool truth(const char* name, bool otherwise) const {
    const Json* value = member(name);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(std::string(name) + " must be true or false");
    return value->get<bool>();
  }
  std::string text(const char* name, const std::string& otherwise) const {
    const Json* value = member(name);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) refuse(std::string(name) + " must be a text");
    return value->get<std::string>();
  }
  ConfigReader object(const char* name) const {
    const Json* value = member(name);
    if (value == nullptr || !value->is_object()) refuse(std::string(name) + " must be an object");
    return {*value, path_};
  }
  [[noreturn]] void refuse(const std::string& sentence) const { throw ConfigError(path_ + ": " + sentence); }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
  std::string path_;
};

QuantizationSettings checked(const ConfigReader& reader, std::int64_t bits, std::int64_t group_size, bool symmetric) {
  if (bits != 4 && bits != 8) reader.refuse("weights must have 4 or 8 bits, got " + std::to_string(bits));
  if (group_size < -1 || group_size == 0)
    reader.refuse("the group size must be -1 or at least 1, got " + std::to_string(group_size));
  return {.bits = bits, .group_size = group_size == -1 ? 0 : group_size, .symmetric = symmetric};
}

QuantizationConfig read_gptq(const ConfigReader& reader) {
  const std::string form = reader.text("checkpoint_format", "gptq");
  if (form != "gptq" && form != "gptq_v2")
    reader.refuse("checkpoint_format must be gptq or gptq_v2, got " + in_quotes(form));
  return {.format = form == "gptq" ? &kGptqFormat : &kGptqV2Format,
          .settings = checked(reader, reader.integer("bits"), reader.integer("group_size"), reader.truth("sym", true)),
          .act_order = reader.truth("desc_act", false)};
}

QuantizationConfig read_awq(const ConfigReader& reader) {
  const std::string version = reader.text("version", "gemm");
  if (version != "gemm" && version != "GEMM") reader.refuse("version must be gemm, got " + in_quotes(version));
  if (!reader.truth("zero_point", true)) reader.refuse("zero_point must be true");
  return {.format = &kAwqFormat,
          .settings =
              checked(reader, reader.integer("bits", "w_bit"), reader.integer("group_size", "q_group_size"), false)};
}

QuantizationConfig read_compressed_tensors(const ConfigReader& reader) {
  if (const std::string form = reader.text("format", ""); form != "pack-quantized")
    reader.refuse("format must be pack-quantized, got " + in_quotes(form));
  const ConfigReader groups = reader.object("config_groups");
  if (groups.json().size() != 1)
    reader.refuse("config_groups must hold one group, got " + std::to_string(groups.json().size()));
  const std::string name = groups.json().begin().key();
  const ConfigReader weights = groups.object(name.c_str()).object("weights");
  const bool whole = weights.text("strategy", "") == "channel";
  return {.format = &kCompressedTensorsFormat,
          .settings = checked(weights, weights.integer("num_bits"), whole ? -1 : weights.integer("group_size"),
                              weights.truth("symmetric", true))};
}

Json read_object(const fs::path& path) {
  Json json = read_json(read_text_file(path.string(), kMaxConfigBytes, "config"), path.string());
  if (!json.is_object()) throw ConfigError(path.string() + ": must be a JSON object");
  return json;
}

}  // namespace

std::vector<TextFile> quantization_config_files(const QuantizationConfig& config, const std::string& model_config,
                                                const std::string& config_path) {
  Json model = Json::object();
  if (!model_config.empty()) model = read_json(model_config, config_path);
  if (!model.is_object()) throw ConfigError(config_path + ": must be a JSON object");
  if (const auto found = model.find("quantization_config"); found != model.end() && !found->is_null())
    throw ConfigError(config_path + ": has a quantization_config: the model is quantised already");
  const bool awq = config.format == &kAwqFormat;
  const bool compressed = config.format == &kCompressedTensorsFormat;
  const Json made = awq ? awq_config(config) : compressed ? compressed_tensors_config(config) : gptq_config(config);
  model["quantization_config"] = made;
  constexpr int kIndent = 2;
  std::vector<TextFile> files{{"config.json", model.dump(kIndent) + "\n"}};
  if (awq)
    files.push_back({"quant_config.json", Json{{"zero_point", true},
                                               {"q_group_size", group_or_whole(config.settings.group_size)},
                                               {"w_bit", config.settings.bits},
                                               {"version", "GEMM"}}
                                                  .dump(kIndent) +
                                              "\n"});
  if (!awq && !compressed) files.push_back({"quantize_config.json", made.dump(kIndent) + "\n"});
  return files;
}

std::optional<QuantizationConfig> read_quantization_config(const std::string& folder) {
  std::error_code absent;  // reading says what is wrong with a file that is there
  const auto there = [&](const char* name) { return fs::exists(fs::path(folder) / name, absent); };
  if (there("config.json")) {
    const fs::path path = fs::path(folder) / "config.json";
    const Json json = read_object(path);
    if (const auto found = json.find("quantization_config"); found != json.end() && !found->is_null()) {
      if (!found->is_object()) throw ConfigError(path.string() + ": quantization_config must be an object");
      const ConfigReader reader(*found, path.string() + ": quantization_config");
      const std::string method = reader.text("quant_method", "");
      if (method == "gptq") return read_gptq(reader);
      if (method == "awq") return read_awq(reader);
      if (method == "compressed-tensors") return read_compressed_tensors(reader);
      reader.refuse("quant_method must be gptq, awq or compressed-tensors, got " + in_quotes(method));
    }
  }
  if (there("quantize_config.json")) {
    const fs::path path = fs::path(folder) / "quantize_config.json";
    const Json json = read_object(path);
    return read_gptq({json, path.string()});
  }
  if (there("quant_config.json")) {
    const fs::path path = fs::path(folder) / "quant_config.json";
    const Json json = read_object(path);
    return read_awq({json, path.string()});
  }
  return std::nullopt;
}

}  // namespace inferometer
