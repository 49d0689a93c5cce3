#include "reference/checkpoint/decoder_config.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "harness/operator/fields.hpp"
#include "harness/operator/nearest_word.hpp"
#include "harness/results/json.hpp"
#include "harness/sweep/json_reader.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;
constexpr double kDefaultTheta = 1e4;  // of transformers, where a config has none

// Members of config.json; null counts as absent.
class Config {
 public:
  explicit Config(std::string path) : path_(std::move(path)), json_(read_json(read_text(path_), path_)) {
    if (!json_.is_object()) refuse("must be a JSON object");
  }

  std::int64_t size(const char* key, std::optional<std::int64_t> otherwise = std::nullopt) const {
    const Json* const value = member(json_, key);
    if (value == nullptr && otherwise) return *otherwise;
    if (value == nullptr || !value->is_number_integer() || value->get<std::int64_t>() < 1)
      refuse(std::string(key) + " must be an integer of at least 1");
    return value->get<std::int64_t>();
  }
  double number(const Json& json, const char* key, double otherwise) const {
    const Json* const value = member(json, key);
    if (value == nullptr) return otherwise;
    if (!value->is_number()) refuse(std::string(key) + " must be a number");
    return value->get<double>();
  }
  bool truth(const char* key, bool otherwise) const {
    const Json* const value = member(json_, key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(std::string(key) + " must be true or false");
    return value->get<bool>();
  }
  std::string text(const Json& json, const char* key, const std::string& otherwise) const {
    const Json* const value = member(json, key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) refuse(std::string(key) + " must be a text");
    return value->get<std::string>();
  }
  const Json* object(const char* key) const {
    const Json* const value = member(json_, key);
    if (value != nullptr && !value->is_object()) refuse(std::string(key) + " must be an object");
    return value;
  }
  bool has(const char* key) const { return member(json_, key) != nullptr; }
  const Json& json() const { return json_; }
  [[noreturn]] void refuse(const std::string& sentence) const { throw ConfigError(path_ + ": " + sentence); }

 private:
  static std::string read_text(const std::string& path) { return read_text_file(path, kMaxConfigBytes, "config"); }
  static const Json* member(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found == json.end() || found->is_null() ? nullptr : &*found;
  }

  std::string path_;
  Json json_;
};

// Plain RoPE's theta: a key of its own up to transformers 4, since then in rope_parameters.
double rope_theta(const Config& config) {
  double theta = config.number(config.json(), "rope_theta", kDefaultTheta);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* const parameters = config.object(key);
    if (parameters == nullptr) continue;
    const std::string type = config.text(*parameters, "rope_type", config.text(*parameters, "type", "default"));
    if (type != "default") config.refuse(std::string(key) + ": rope_type must be default, got " + in_quotes(type));
    theta = config.number(*parameters, "rope_theta", theta);
  }
  return theta;
}

void refuse_what_is_missing_here(const Config& config, const std::string& type) {
  if (const std::string act = config.text(config.json(), "hidden_act", "silu"); act != "silu")
    config.refuse("hidden_act must be silu, got " + in_quotes(act));
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (config.truth(key, false)) config.refuse(std::string(key) + " must be false for a model of type " + type);
  if (config.has("quantization_config")) config.refuse("has a quantization_config: weights must be F16, BF16 or F32");
}

}  // namespace

DecoderShape read_decoder_config(const std::string& folder) {
  const Config config((std::filesystem::path(folder) / "config.json").string());
  const std::string type = config.text(config.json(), "model_type", "");
  if (type != "llama" && type != "mistral" && type != "qwen2" && type != "qwen3")
    config.refuse("model_type must be llama, mistral, qwen2 or qwen3, got " + in_quotes(type));
  refuse_what_is_missing_here(config, type);
  DecoderShape shape;
  shape.name = type;
  shape.layers = config.size("num_hidden_layers");
  shape.hidden = config.size("hidden_size");
  shape.q_heads = config.size("num_attention_heads");
  shape.kv_heads = config.size("num_key_value_heads", shape.q_heads);
  shape.head_dim = config.size("head_dim", std::max<std::int64_t>(shape.hidden / shape.q_heads, 1));
  shape.intermediate = config.size("intermediate_size");
  shape.vocabulary = config.size("vocab_size");
  shape.max_length = config.size("max_position_embeddings");
  // Qwen's configs name a window also where it is not used.
  if (type == "mistral" || config.truth("use_sliding_window", false))
    shape.max_length = std::min(shape.max_length, config.size("sliding_window", shape.max_length));
  shape.rope_theta = rope_theta(config);
  shape.norm_eps = config.number(config.json(), "rms_norm_eps", shape.norm_eps);
  shape.tied_head = config.truth("tie_word_embeddings", false);
  shape.qkv_bias = type == "qwen2";
  shape.qk_norm = type == "qwen3";
  try {
    check(shape);
  } catch (const ProblemError& error) {
    config.refuse(error.what());
  }
  return shape;
}

}  // namespace inferometer
