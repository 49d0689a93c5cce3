#include "reference/serving/paged_decoder.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "reference/common/eigen.hpp"
#include "reference/decoder/quantized_rows.hpp"

namespace inferometer {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXf;

// A tensor as it is worth.
Matrix read(const DecoderWeights& weights, const PlacedWeight& tensor, std::int64_t bits) {
  const WeightSize size = weight_size(weights.shape(), tensor.weight);
  std::vector<std::uint16_t> stored(static_cast<std::size_t>(size.elements()));
  weights.read(tensor, 0, size.rows, stored);
  Matrix result(size.rows, size.columns);
  for (std::int64_t i = 0; i < size.elements(); ++i) result.data()[i] = f16_value(stored[static_cast<std::size_t>(i)]);
  for (std::int64_t row = 0; row < size.rows; ++row)
    quantize_weight_row(bits, {result.row(row).data(), static_cast<std::size_t>(size.columns)});
  return result;
}

struct Layer {
  Vector attention_norm, mlp_norm, q_bias, k_bias, v_bias, q_norm, k_norm;
  Matrix q, k, v, o, gate, up, down;
};

Layer read_layer(const DecoderWeights& weights, std::int64_t layer, std::int64_t bits) {
  const auto matrix = [&](DecoderWeight weight) { return read(weights, {weight, layer}, bits); };
  const auto vector = [&](DecoderWeight weight) -> Vector {
    if (!has_weight(weights.shape(), weight)) return {};
    const Matrix row = read(weights, {weight, layer}, 16);
    return Eigen::Map<const Vector>(row.data(), row.size());
  };
  using enum DecoderWeight;
  return {.attention_norm = vector(attention_norm),
          .mlp_norm = vector(mlp_norm),
          .q_bias = vector(q_bias),
          .k_bias = vector(k_bias),
          .v_bias = vector(v_bias),
          .q_norm = vector(q_norm),
          .k_norm = vector(k_norm),
          .q = matrix(q),
          .k = matrix(k),
          .v = matrix(v),
          .o = matrix(o),
          .gate = matrix(gate),
          .up = matrix(up),
          .down = matrix(down)};
}

}  // namespace

struct PagedDecoder::State {
  State(const DecoderWeights& weights, const PagedDecoderConfig& given)
      : shape(weights.shape()), config(given), embedding(read(weights, {DecoderWeight::embedding, 0}, 16)) {
    for (std::int64_t layer = 0; layer < shape.layers; ++layer)
      layers.push_back(read_layer(weights, layer, config.weight_bits));
    const Matrix gain = read(weights, {DecoderWeight::final_norm, 0}, 16);
    final_norm = Eigen::Map<const Vector>(gain.data(), gain.size());
    head = shape.tied_head ? embedding : read(weights, {DecoderWeight::head, 0}, 16);
    // Rows: layer by layer, all tokens of all blocks.
    const std::int64_t tokens = config.num_blocks * config.block_size;
    keys.setConstant(shape.layers * tokens, shape.kv_size(), std::nanf(""));  // nobody may read what nobody wrote
    values = keys;
  }

  Vector norm(const Vector& x, const Vector& gain) const {
    const float mean = x.squaredNorm() / static_cast<float>(x.size());
    return x.cwiseProduct(gain) / std::sqrt(mean + static_cast<float>(shape.norm_eps));
  }

  // Norm of each head (qk_norm), then RoPE.
  void turn(Vector& x, const Vector& gain, std::int64_t position) const {
    const std::int64_t d = shape.head_dim;
    for (std::int64_t at = 0; at < x.size(); at += d) {
      if (shape.qk_norm) x.segment(at, d) = norm(x.segment(at, d), gain);
      for (std::int64_t i = 0; i < d / 2; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(d);
        const double angle = static_cast<double>(position) * std::pow(shape.rope_theta, exponent);
        const auto cosine = static_cast<float>(std::cos(angle));
        const auto sine = static_cast<float>(std::sin(angle));
        const float a = x[at + i];
        const float b = x[at + i + d / 2];
        x[at + i] = a * cosine - b * sine;
        x[at + i + d / 2] = b * cosine + a * sine;
      }
    }
  }

  std::int64_t row_of(std::int64_t layer, std::span<const std::int32_t> table, std::int64_t token) const {
    const std::int64_t block = table[static_cast<std::size_t>(token / config.block_size)];
    return (layer * config.num_blocks + block) * config.block_size + token % config.block_size;
  }

  void store(Matrix& cache, std::int64_t row, const Vector& x) const {
    cache.row(row) = x.transpose();
    for (std::int64_t at = 0; at < x.size(); at += shape.head_dim)
      quantize_kv_head(config.kv_bits, {cache.row(row).data() + at, static_cast<std::size_t>(shape.head_dim)});
  }

  Vector attention(const Vector& q, std::int64_t layer, std::int64_t position,
                   std::span<const std::int32_t> table) const {
    const std::int64_t d = shape.head_dim;
    Vector o = Vector::Zero(shape.q_size());
    Vector p(position + 1);
    for (std::int64_t h = 0; h < shape.q_heads; ++h) {
      const std::int64_t at = h / (shape.q_heads / shape.kv_heads) * d;  // in a row of the cache
      for (std::int64_t t = 0; t <= position; ++t)
        p[t] = keys.row(row_of(layer, table, t)).segment(at, d).dot(q.segment(h * d, d));
      p /= std::sqrt(static_cast<float>(d));
      p = (p.array() - p.maxCoeff()).exp();
      p /= p.sum();
      for (std::int64_t t = 0; t <= position; ++t)
        o.segment(h * d, d) += p[t] * values.row(row_of(layer, table, t)).segment(at, d).transpose();
    }
    return o;
  }

  // h behind all layers.
  Vector forward(std::int32_t token, std::int64_t position, std::span<const std::int32_t> table) {
    Vector h = embedding.row(token).transpose();
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      const Layer& layer = layers[static_cast<std::size_t>(i)];
      const Vector n = norm(h, layer.attention_norm);
      Vector q = layer.q * n;
      Vector k = layer.k * n;
      Vector v = layer.v * n;
      if (shape.qkv_bias) {
        q += layer.q_bias;
        k += layer.k_bias;
        v += layer.v_bias;
      }
      turn(q, layer.q_norm, position);
      turn(k, layer.k_norm, position);
      store(keys, row_of(i, table, position), k);
      store(values, row_of(i, table, position), v);
      h += layer.o * attention(q, i, position, table);
      const Vector m = norm(h, layer.mlp_norm);
      const Vector gate = layer.gate * m;
      const Vector active = (gate.array() / (1 + (-gate.array()).exp()) * (layer.up * m).array()).matrix();
      h += layer.down * active;
    }
    return h;
  }

  DecoderShape shape;
  PagedDecoderConfig config;
  Matrix embedding;
  Matrix head;
  Vector final_norm;
  std::vector<Layer> layers;
  Matrix keys;
  Matrix values;
};

PagedDecoder::PagedDecoder(const DecoderWeights& weights, const PagedDecoderConfig& config)
    : state_(std::make_unique<State>(weights, config)) {}

PagedDecoder::~PagedDecoder() = default;

std::int32_t PagedDecoder::step(std::span<const std::int32_t> tokens, std::int64_t position,
                                std::span<const std::int32_t> table) {
  Vector h;
  for (const std::int32_t token : tokens) h = state_->forward(token, position++, table);
  const Vector logits = state_->head * state_->norm(h, state_->final_norm);
  Eigen::Index best = 0;
  logits.maxCoeff(&best);
  return static_cast<std::int32_t>(best);
}

void PagedDecoder::copy_block(std::int32_t source, std::int32_t destination) {
  State& s = *state_;
  for (std::int64_t layer = 0; layer < s.shape.layers; ++layer) {
    const auto first = [&](std::int32_t block) { return (layer * s.config.num_blocks + block) * s.config.block_size; };
    s.keys.middleRows(first(destination), s.config.block_size) = s.keys.middleRows(first(source), s.config.block_size);
    s.values.middleRows(first(destination), s.config.block_size) =
        s.values.middleRows(first(source), s.config.block_size);
  }
}

}  // namespace inferometer
