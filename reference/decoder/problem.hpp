// What a decoder computes: a Llama-shaped transformer (Touvron et al. 2023), with the two switches that Qwen's families
// add. For each token x, with h = embedding[x] at first, each layer does
//
//   n = RMSNorm(h)                        RMSNorm(h) = h / sqrt(mean(h^2) + norm_eps) * gain
//   q, k, v = Wq n, Wk n, Wv n            + biases (qkv_bias: Qwen2.5)
//   q, k = RMSNorm per head of q, k       (qk_norm: Qwen3)
//   q, k = RoPE(q, k, position)           pairs (i, i + head_dim / 2) turned by position * theta^(-2 i / head_dim)
//   h += Wo attention(q, keys, values)    causal; q head h reads KV head h / (q_heads / kv_heads)
//   n = RMSNorm(h)
//   h += Wdown (silu(Wgate n) * Wup n)    silu(x) = x / (1 + e^-x)
//
// and then logits = Whead RMSNorm(h). Weights are f16, as [outputs, inputs], row by row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inferometer {

struct DecoderShape {
  std::string name;
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t q_heads = 1;
  std::int64_t kv_heads = 1;  // divides q_heads
  std::int64_t head_dim = 1;  // even
  std::int64_t intermediate = 1;
  std::int64_t vocabulary = 1;
  std::int64_t max_length = 1;  // tokens of a sequence, as its configuration says
  double rope_theta = 1e4;
  double norm_eps = 1e-5;
  bool tied_head = false;  // the embedding is the head
  bool qkv_bias = false;
  bool qk_norm = false;

  std::int64_t q_size() const { return q_heads * head_dim; }
  std::int64_t kv_size() const { return kv_heads * head_dim; }
  bool operator==(const DecoderShape&) const = default;
};

std::vector<std::string> decoder_names();                  // of the shapes below, in the order of the table
const DecoderShape& decoder_shape(std::string_view name);  // throws std::out_of_range, naming those there are

// Throws ProblemError naming the field for a shape that no decoder can have.
void check(const DecoderShape& shape);

// The tensors of a decoder. Those from attention_norm to down are there once in each layer.
enum class DecoderWeight : std::uint8_t {
  embedding,       // [vocabulary, hidden]
  attention_norm,  // [hidden]
  q,               // [q_size, hidden]
  k,               // [kv_size, hidden]
  v,               // [kv_size, hidden]
  q_bias,          // [q_size]    qkv_bias
  k_bias,          // [kv_size]   qkv_bias
  v_bias,          // [kv_size]   qkv_bias
  q_norm,          // [head_dim]  qk_norm
  k_norm,          // [head_dim]  qk_norm
  o,               // [hidden, q_size]
  mlp_norm,        // [hidden]
  gate,            // [intermediate, hidden]
  up,              // [intermediate, hidden]
  down,            // [hidden, intermediate]
  final_norm,      // [hidden]
  head,            // [vocabulary, hidden], not with tied_head
};

// A tensor's size; one row for a vector.
struct WeightSize {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t elements() const { return rows * columns; }
  bool operator==(const WeightSize&) const = default;
};

bool is_per_layer(DecoderWeight weight);
bool has_weight(const DecoderShape& shape, DecoderWeight weight);
WeightSize weight_size(const DecoderShape& shape, DecoderWeight weight);
std::int64_t parameters(const DecoderShape& shape);

// As transformers names it in a checkpoint: "model.layers.3.self_attn.q_proj.weight". `layer` counts from 0 and is
// ignored for what stands outside the layers.
std::string weight_name(DecoderWeight weight, std::int64_t layer);

// Every tensor of a decoder, layer by layer.
struct PlacedWeight {
  DecoderWeight weight;
  std::int64_t layer;  // 0 outside the layers
};
std::vector<PlacedWeight> all_weights(const DecoderShape& shape);

// Where the values of a decoder's weights come from.
class DecoderWeights {
 public:
  DecoderWeights() = default;
  DecoderWeights(const DecoderWeights&) = delete;
  DecoderWeights& operator=(const DecoderWeights&) = delete;
  virtual ~DecoderWeights() = default;

  virtual const DecoderShape& shape() const = 0;
  // Rows [row, row + rows) of a tensor as bits of f16. `to` has room for exactly those.
  virtual void read(const PlacedWeight& tensor, std::int64_t row, std::int64_t rows,
                    std::span<std::uint16_t> to) const = 0;
  // When all values follow from a seed: a device then makes them in place (seeded_values).
  virtual std::optional<std::uint64_t> seed() const { return std::nullopt; }
};

// A tensor of random weights: element i is normal_element<Dtype::f16>(key, i, scale, offset) (generate.hpp), so that
// host and device make the same ones and any of them by itself. Matrices have variance 1 / columns, which keeps
// activations near 1; gains lie around 1, biases around 0.
struct SeededValues {
  std::uint64_t key = 0;
  float scale = 0;
  std::int32_t offset = 0;
};
SeededValues seeded_values(const DecoderShape& shape, std::uint64_t seed, const PlacedWeight& tensor);

// How weight_bits 8 and 4 are made from these f16 values: rounding to nearest in groups of neighbours along a row, each
// operation in f32 and rounded once to nearest even.
//   scale = f16(max |w| / L), L = 127 or 7;   code = w * (1 / scale), rounded to the nearest integer, clamped to +- L
// code 0 where the scale is 0; the matrix then computes with code * scale. Embedding, head, gains and biases stay f16.
inline constexpr std::int64_t kWeightGroup = 128;

}  // namespace inferometer
