// Folders with a model's seeded weights, as transformers writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference/decoder/seeded_weights.hpp"
#include "tests/reference/checkpoint/checkpoint_files.hpp"

namespace inferometer::test {

// The shape `tiny` with the switches of a model_type.
inline DecoderShape tiny_of_family(const std::string& type) {
  DecoderShape shape = decoder_shape("tiny");
  shape.name = type;
  shape.qkv_bias = type == "qwen2";
  shape.qk_norm = type == "qwen3";
  shape.tied_head = type == "qwen3";
  return shape;
}

inline std::string config_of(const DecoderShape& s, const std::string& type, const std::string& more = "") {
  const auto field = [](const char* key, std::int64_t value) {
    return "\"" + std::string(key) + "\": " + std::to_string(value) + ", ";
  };
  return "{\"model_type\": \"" + type + "\", \"hidden_act\": \"silu\", " + field("num_hidden_layers", s.layers) +
         field("hidden_size", s.hidden) + field("num_attention_heads", s.q_heads) +
         field("num_key_value_heads", s.kv_heads) + field("head_dim", s.head_dim) +
         field("intermediate_size", s.intermediate) + field("vocab_size", s.vocabulary) +
         field("max_position_embeddings", s.max_length) + "\"rms_norm_eps\": 1e-5, \"rope_theta\": 10000.0, " + more +
         "\"tie_word_embeddings\": " + (s.tied_head ? "true" : "false") + "}";
}

// The shape's seeded weights as a folder; `edit` changes tensors before they are written.
inline std::string write_model(const ScratchFolder& folder, const DecoderShape& shape, const std::string& type,
                               const std::function<void(std::vector<TestTensor>&)>& edit = {}) {
  const SeededWeights weights(shape, 4);
  std::vector<TestTensor> tensors;
  for (const PlacedWeight& placed : all_weights(shape)) {
    const WeightSize size = weight_size(shape, placed.weight);
    std::vector<std::uint16_t> values(static_cast<std::size_t>(size.elements()));
    weights.read(placed, 0, size.rows, values);
    std::vector<std::uint64_t> dims{static_cast<std::uint64_t>(size.columns)};
    if (size.rows > 1) dims.insert(dims.begin(), static_cast<std::uint64_t>(size.rows));
    tensors.push_back(test_tensor(weight_name(placed.weight, placed.layer), TensorType::f16, dims, values));
  }
  if (edit) edit(tensors);
  write_tensors(folder / "model.safetensors", tensors);
  write_file(folder, "config.json", config_of(shape, type));
  return folder / "";
}

}  // namespace inferometer::test
