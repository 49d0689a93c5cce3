#include "reference/decoder/cpu_decoder.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <string>

#include "harness/operator/dtype.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/decoder/quantized_rows.hpp"

namespace inferometer {
namespace {

FloatRows load(const DecoderWeights& weights, const PlacedWeight& tensor, std::int64_t bits) {
  if (!has_weight(weights.shape(), tensor.weight)) return {};
  const WeightSize size = weight_size(weights.shape(), tensor.weight);
  std::vector<std::uint16_t> row(static_cast<std::size_t>(size.columns));
  FloatRows matrix(size.rows, size.columns);
  for (std::int64_t r = 0; r < size.rows; ++r) {
    weights.read(tensor, r, 1, row);
    float* const to = matrix.row(r).data();
    std::transform(row.begin(), row.end(), to, &f16_value);
    quantize_weight_row(bits, {to, row.size()});
  }
  return matrix;
}

}  // namespace

struct CpuDecoder::Layer {
  FloatRows attention_norm, q, k, v, q_bias, k_bias, v_bias, q_norm, k_norm, o, mlp_norm, gate, up, down;

  Layer(const DecoderWeights& weights, std::int64_t number, std::int64_t bits) {
    const auto matrix = [&](DecoderWeight weight) { return load(weights, {weight, number}, bits); };
    const auto vector = [&](DecoderWeight weight) { return load(weights, {weight, number}, 16); };
    attention_norm = vector(DecoderWeight::attention_norm);
    q = matrix(DecoderWeight::q);
    k = matrix(DecoderWeight::k);
    v = matrix(DecoderWeight::v);
    q_bias = vector(DecoderWeight::q_bias);
    k_bias = vector(DecoderWeight::k_bias);
    v_bias = vector(DecoderWeight::v_bias);
    q_norm = vector(DecoderWeight::q_norm);
    k_norm = vector(DecoderWeight::k_norm);
    o = matrix(DecoderWeight::o);
    mlp_norm = vector(DecoderWeight::mlp_norm);
    gate = matrix(DecoderWeight::gate);
    up = matrix(DecoderWeight::up);
    down = matrix(DecoderWeight::down);
  }
};

CpuKvCache::CpuKvCache(const DecoderShape& shape, std::int64_t capacity)
    : keys_(static_cast<std::size_t>(shape.layers), FloatRows(capacity, shape.kv_size())), values_(keys_) {}

CpuDecoder::CpuDecoder(const DecoderWeights& weights, const DecoderBits& bits, int threads)
    : shape_(weights.shape()), bits_(bits), threads_(threads) {
  check(shape_);
  embedding_ = load(weights, {DecoderWeight::embedding, 0}, 16);
  final_norm_ = load(weights, {DecoderWeight::final_norm, 0}, 16);
  head_ = load(weights, {DecoderWeight::head, 0}, 16);
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) layers_.emplace_back(weights, layer, bits.weights);
}

CpuDecoder::~CpuDecoder() = default;

const DecoderShape& CpuDecoder::shape() const { return shape_; }

// x W^T, the rows of W shared out to the threads where the product is worth waking them.
FloatRows CpuDecoder::multiply(const FloatRows& x, const FloatRows& w) const {
  constexpr std::int64_t kLeastShared = std::int64_t{1} << 27;  // multiply-adds: some ten milliseconds
  FloatRows y(x.rows(), w.rows());
  const int threads = x.rows() * w.size() < kLeastShared ? 1 : threads_;
  const std::int64_t part = (w.rows() + threads - 1) / threads;
  parallel_for(threads, threads, [&](std::int64_t thread) {
    const std::int64_t row = std::min(thread * part, static_cast<std::int64_t>(w.rows()));
    const std::int64_t rows = std::min(part, static_cast<std::int64_t>(w.rows()) - row);
    if (x.rows() == 1) {
      y.row(0).segment(row, rows).transpose().noalias() = w.middleRows(row, rows) * x.row(0).transpose();
    } else {
      y.middleCols(row, rows).noalias() = x * w.middleRows(row, rows).transpose();
    }
  });
  return y;
}

FloatRows CpuDecoder::norm(const FloatRows& x, const FloatRows& gain) const {
  FloatRows n(x.rows(), x.cols());
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const float mean = x.row(i).squaredNorm() / static_cast<float>(x.cols());
    n.row(i) = x.row(i).cwiseProduct(gain.row(0)) / std::sqrt(mean + static_cast<float>(shape_.norm_eps));
  }
  return n;
}

// The norm of each head, where the shape has one, and RoPE from `position` on.
void CpuDecoder::turn(FloatRows& heads, const FloatRows& gain, std::int64_t position) const {
  if (shape_.qk_norm)
    for (Eigen::Index at = 0; at < heads.cols(); at += shape_.head_dim)
      heads.middleCols(at, shape_.head_dim) = norm(heads.middleCols(at, shape_.head_dim), gain);
  const std::int64_t half = shape_.head_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency =
        std::pow(shape_.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(shape_.head_dim));
    for (Eigen::Index row = 0; row < heads.rows(); ++row) {
      const double angle = static_cast<double>(position + row) * frequency;
      const auto cosine = static_cast<float>(std::cos(angle));
      const auto sine = static_cast<float>(std::sin(angle));
      for (Eigen::Index at = i; at < heads.cols(); at += shape_.head_dim) {
        const float a = heads(row, at);
        const float b = heads(row, at + half);
        heads(row, at) = a * cosine - b * sine;
        heads(row, at + half) = b * cosine + a * sine;
      }
    }
  }
}

void CpuDecoder::store(const FloatRows& rows, FloatRows& cache, std::int64_t position) const {
  cache.middleRows(position, rows.rows()) = rows;
  for (Eigen::Index row = position; row < position + rows.rows(); ++row)
    for (Eigen::Index at = 0; at < cache.cols(); at += shape_.head_dim)
      quantize_kv_head(bits_.kv, {cache.row(row).data() + at, static_cast<std::size_t>(shape_.head_dim)});
}

FloatRows CpuDecoder::attend(const Layer& layer, const FloatRows& normed, std::int64_t number,
                             CpuKvCache& cache) const {
  const std::int64_t position = cache.length_;
  const auto project = [&](const FloatRows& w, const FloatRows& bias) {
    FloatRows y = multiply(normed, w);
    if (bias.size() > 0) y.rowwise() += bias.row(0);
    return y;
  };
  FloatRows q = project(layer.q, layer.q_bias);
  FloatRows k = project(layer.k, layer.k_bias);
  turn(q, layer.q_norm, position);
  turn(k, layer.k_norm, position);
  FloatRows& keys = cache.keys_[static_cast<std::size_t>(number)];
  FloatRows& values = cache.values_[static_cast<std::size_t>(number)];
  store(k, keys, position);
  store(project(layer.v, layer.v_bias), values, position);
  const std::int64_t d = shape_.head_dim;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  FloatRows o(q.rows(), q.cols());
  for (std::int64_t head = 0; head < shape_.q_heads; ++head) {
    const std::int64_t at = head / (shape_.q_heads / shape_.kv_heads) * d;
    for (Eigen::Index row = 0; row < q.rows(); ++row) {
      const Eigen::Index seen = position + row + 1;
      Eigen::VectorXf weights = keys.block(0, at, seen, d) * q.row(row).segment(head * d, d).transpose() * scale;
      weights = (weights.array() - weights.maxCoeff()).exp();
      o.row(row).segment(head * d, d).noalias() = weights.transpose() * values.block(0, at, seen, d) / weights.sum();
    }
  }
  return multiply(o, layer.o);
}

std::vector<float> CpuDecoder::step(std::span<const std::int32_t> tokens, CpuKvCache& cache) const {
  if (tokens.empty()) throw std::invalid_argument("cpu decoder: a step must have a token, got none");
  if (cache.length_ + std::ssize(tokens) > cache.capacity())
    throw std::invalid_argument("cpu decoder: the cache holds " + std::to_string(cache.capacity()) + " tokens, got " +
                                std::to_string(cache.length_) + " and " + std::to_string(tokens.size()) + " more");
  FloatRows h(std::ssize(tokens), shape_.hidden);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= shape_.vocabulary)
      throw std::invalid_argument("cpu decoder: tokens must be 0 to " + std::to_string(shape_.vocabulary - 1) +
                                  ", got " + std::to_string(tokens[i]));
    h.row(static_cast<Eigen::Index>(i)) = embedding_.row(tokens[i]);
  }
  for (std::int64_t number = 0; number < shape_.layers; ++number) {
    const Layer& layer = layers_[static_cast<std::size_t>(number)];
    h += attend(layer, norm(h, layer.attention_norm), number, cache);
    const FloatRows n = norm(h, layer.mlp_norm);
    FloatRows active = multiply(n, layer.gate);
    active = active.array() / (1 + (-active.array()).exp()) * multiply(n, layer.up).array();
    h += multiply(active, layer.down);
  }
  cache.length_ += std::ssize(tokens);
  const FloatRows logits = multiply(norm(h.bottomRows(1), final_norm_), shape_.tied_head ? embedding_ : head_);
  return {logits.data(), logits.data() + logits.size()};
}

std::int32_t greedy_token(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace inferometer
