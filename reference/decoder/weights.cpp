#include <array>
#include <cmath>

#include "harness/operator/generate.hpp"
#include "reference/decoder/problem.hpp"

namespace inferometer {
namespace {

struct WeightInfo {
  DecoderWeight weight;
  std::string_view name;  // within its layer, or of the whole model
  bool per_layer;
};

constexpr std::array kWeights{
    WeightInfo{DecoderWeight::embedding, "model.embed_tokens.weight", false},
    WeightInfo{DecoderWeight::attention_norm, "input_layernorm.weight", true},
    WeightInfo{DecoderWeight::q, "self_attn.q_proj.weight", true},
    WeightInfo{DecoderWeight::k, "self_attn.k_proj.weight", true},
    WeightInfo{DecoderWeight::v, "self_attn.v_proj.weight", true},
    WeightInfo{DecoderWeight::q_bias, "self_attn.q_proj.bias", true},
    WeightInfo{DecoderWeight::k_bias, "self_attn.k_proj.bias", true},
    WeightInfo{DecoderWeight::v_bias, "self_attn.v_proj.bias", true},
    WeightInfo{DecoderWeight::q_norm, "self_attn.q_norm.weight", true},
    WeightInfo{DecoderWeight::k_norm, "self_attn.k_norm.weight", true},
    WeightInfo{DecoderWeight::o, "self_attn.o_proj.weight", true},
    WeightInfo{DecoderWeight::mlp_norm, "post_attention_layernorm.weight", true},
    WeightInfo{DecoderWeight::gate, "mlp.gate_proj.weight", true},
    WeightInfo{DecoderWeight::up, "mlp.up_proj.weight", true},
    WeightInfo{DecoderWeight::down, "mlp.down_proj.weight", true},
    WeightInfo{DecoderWeight::final_norm, "model.norm.weight", false},
    WeightInfo{DecoderWeight::head, "lm_head.weight", false},
};

const WeightInfo& info(DecoderWeight weight) { return kWeights.at(static_cast<std::size_t>(weight)); }

constexpr double kGainStddev = 0.1;
constexpr double kBiasStddev = 0.1;

bool is_gain(DecoderWeight weight) {
  switch (weight) {
    case DecoderWeight::attention_norm:
    case DecoderWeight::q_norm:
    case DecoderWeight::k_norm:
    case DecoderWeight::mlp_norm:
    case DecoderWeight::final_norm: return true;
    default: return false;
  }
}

bool is_bias(DecoderWeight weight) {
  return weight == DecoderWeight::q_bias || weight == DecoderWeight::k_bias || weight == DecoderWeight::v_bias;
}

}  // namespace

bool is_per_layer(DecoderWeight weight) { return info(weight).per_layer; }

bool has_weight(const DecoderShape& shape, DecoderWeight weight) {
  if (is_bias(weight)) return shape.qkv_bias;
  if (weight == DecoderWeight::q_norm || weight == DecoderWeight::k_norm) return shape.qk_norm;
  return weight != DecoderWeight::head || !shape.tied_head;
}

WeightSize weight_size(const DecoderShape& s, DecoderWeight weight) {
  switch (weight) {
    case DecoderWeight::embedding:
    case DecoderWeight::head: return {s.vocabulary, s.hidden};
    case DecoderWeight::q: return {s.q_size(), s.hidden};
    case DecoderWeight::k:
    case DecoderWeight::v: return {s.kv_size(), s.hidden};
    case DecoderWeight::q_bias: return {1, s.q_size()};
    case DecoderWeight::k_bias:
    case DecoderWeight::v_bias: return {1, s.kv_size()};
    case DecoderWeight::q_norm:
    case DecoderWeight::k_norm: return {1, s.head_dim};
    case DecoderWeight::o: return {s.hidden, s.q_size()};
    case DecoderWeight::gate:
    case DecoderWeight::up: return {s.intermediate, s.hidden};
    case DecoderWeight::down: return {s.hidden, s.intermediate};
    case DecoderWeight::attention_norm:
    case DecoderWeight::mlp_norm:
    case DecoderWeight::final_norm: return {1, s.hidden};
  }
  return {};
}

std::int64_t parameters(const DecoderShape& shape) {
  std::int64_t sum = 0;
  for (const PlacedWeight& tensor : all_weights(shape)) sum += weight_size(shape, tensor.weight).elements();
  return sum;
}

std::string weight_name(DecoderWeight weight, std::int64_t layer) {
  const WeightInfo& of = info(weight);
  if (!of.per_layer) return std::string(of.name);
  return "model.layers." + std::to_string(layer) + "." + std::string(of.name);
}

std::vector<PlacedWeight> all_weights(const DecoderShape& shape) {
  std::vector<PlacedWeight> tensors;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer)
    for (const WeightInfo& of : kWeights)
      if (has_weight(shape, of.weight) && (of.per_layer || layer == 0)) tensors.push_back({of.weight, layer});
  return tensors;
}

SeededValues seeded_values(const DecoderShape& shape, std::uint64_t seed, const PlacedWeight& tensor) {
  const auto number =
      static_cast<std::uint64_t>(tensor.layer) * kWeights.size() + static_cast<std::uint64_t>(tensor.weight);
  double mean = 0;
  double stddev = 1;  // the embedding's
  if (is_gain(tensor.weight)) {
    mean = 1;
    stddev = kGainStddev;
  } else if (is_bias(tensor.weight)) {
    stddev = kBiasStddev;
  } else if (tensor.weight != DecoderWeight::embedding) {
    stddev = 1 / std::sqrt(static_cast<double>(weight_size(shape, tensor.weight).columns));
  }
  return {.key = stream_key(seed, number), .scale = normal_scale(stddev), .offset = normal_offset(mean, stddev)};
}

}  // namespace inferometer
