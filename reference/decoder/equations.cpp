#include "reference/decoder/equations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/decoder/quantized_rows.hpp"

namespace inferometer {
namespace {

using Matrix = DecoderMatrix;
using Row = Eigen::RowVectorXd;

// The rows [row, row + rows) of a tensor as they are worth.
Matrix read(const DecoderWeights& weights, const PlacedWeight& tensor, std::int64_t row, std::int64_t rows,
            std::int64_t bits) {
  const std::int64_t columns = weight_size(weights.shape(), tensor.weight).columns;
  std::vector<std::uint16_t> stored(static_cast<std::size_t>(rows * columns));
  weights.read(tensor, row, rows, stored);
  std::vector<float> values(static_cast<std::size_t>(columns));
  Matrix result(rows, columns);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      values[static_cast<std::size_t>(c)] = f16_value(stored[static_cast<std::size_t>(r * columns + c)]);
    quantize_weight_row(bits, values);
    result.row(r) = Eigen::Map<const Eigen::RowVectorXf>(values.data(), columns).cast<double>();
  }
  return result;
}

// n W^T for a matrix W, a block of its rows at a time and by itself: the largest model fits.
Matrix multiply(const Matrix& n, const DecoderWeights& weights, const PlacedWeight& tensor, std::int64_t bits,
                int threads) {
  constexpr std::int64_t kBlockRows = 64;
  constexpr std::int64_t kLeastShared = std::int64_t{1} << 27;  // multiply-adds worth waking threads
  const std::int64_t rows = weight_size(weights.shape(), tensor.weight).rows;
  if (n.size() * rows < kLeastShared) threads = 1;
  Matrix y(n.rows(), rows);
  parallel_for((rows + kBlockRows - 1) / kBlockRows, threads, [&](std::int64_t block) {
    const std::int64_t row = block * kBlockRows;
    const std::int64_t count = std::min(kBlockRows, rows - row);
    y.middleCols(row, count).noalias() = n * read(weights, tensor, row, count, bits).transpose();
  });
  return y;
}

Matrix rounded(const Matrix& x, const DecoderBits& bits) {
  if (bits.activations != 16) return x;
  return x.unaryExpr([](double value) -> double { return f16_value(f16_bits(static_cast<float>(value))); });
}

// The mathematics of one layer.
class Layer {
 public:
  Layer(const DecoderWeights& weights, std::int64_t layer, const DecoderBits& bits, int threads)
      : weights_(weights), s_(weights.shape()), layer_(layer), bits_(bits), threads_(threads) {}

  void apply(Matrix& h) const {
    h += attention(rounded(norm(h, vector(DecoderWeight::attention_norm)), bits_));
    const Matrix n = rounded(norm(h, vector(DecoderWeight::mlp_norm)), bits_);
    const Matrix gate = times(n, DecoderWeight::gate);
    const Matrix up = times(n, DecoderWeight::up);
    const Matrix active = (gate.array() / (1 + (-gate.array()).exp()) * up.array()).matrix();
    h += times(rounded(active, bits_), DecoderWeight::down);
  }

  // Each row divided by its root mean square, times the gains.
  Matrix norm(const Matrix& x, const Row& gain) const {
    Matrix n = x;
    for (Eigen::Index i = 0; i < x.rows(); ++i)
      n.row(i) =
          x.row(i).cwiseProduct(gain) / std::sqrt(x.row(i).squaredNorm() / static_cast<double>(x.cols()) + s_.norm_eps);
    return n;
  }

 private:
  Matrix times(const Matrix& n, DecoderWeight weight) const {
    return rounded(multiply(n, weights_, {weight, layer_}, bits_.weights, threads_), bits_);
  }
  Row vector(DecoderWeight weight) const { return read(weights_, {weight, layer_}, 0, 1, 16).row(0); }

  // A projection of all tokens, with what the families add to it: [tokens, heads * head_dim].
  Matrix project(const Matrix& n, DecoderWeight weight, DecoderWeight bias) const {
    Matrix x = times(n, weight);
    if (s_.qkv_bias) x.rowwise() += vector(bias);
    return x;
  }

  // Norm of each head (Qwen3), then RoPE: Su et al. 2021, with the halves of a head as the two parts of its pairs.
  void turn(Matrix& x, DecoderWeight gain_of) const {
    const std::int64_t d = s_.head_dim;
    for (Eigen::Index head = 0; head < x.cols() / d; ++head) {
      auto of_head = x.middleCols(head * d, d);
      if (s_.qk_norm) of_head = norm(of_head, vector(gain_of)).eval();
      for (Eigen::Index position = 0; position < x.rows(); ++position)
        for (std::int64_t i = 0; i < d / 2; ++i) {
          const double angle = static_cast<double>(position) *
                               std::pow(s_.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(d));
          const double a = of_head(position, i);
          const double b = of_head(position, i + d / 2);
          of_head(position, i) = a * std::cos(angle) - b * std::sin(angle);
          of_head(position, i + d / 2) = b * std::cos(angle) + a * std::sin(angle);
        }
    }
  }

  // As the cache keeps it.
  void store(Matrix& x) const {
    std::vector<float> head(static_cast<std::size_t>(s_.head_dim));
    for (Eigen::Index row = 0; row < x.rows(); ++row)
      for (Eigen::Index at = 0; at < x.cols(); at += s_.head_dim) {
        Eigen::Map<Eigen::RowVectorXf> values(head.data(), s_.head_dim);
        values = x.row(row).segment(at, s_.head_dim).cast<float>();
        quantize_kv_head(bits_.kv, head);
        x.row(row).segment(at, s_.head_dim) = values.cast<double>();
      }
  }

  Matrix attention(const Matrix& n) const {
    const std::int64_t d = s_.head_dim;
    Matrix q = project(n, DecoderWeight::q, DecoderWeight::q_bias);
    Matrix k = project(n, DecoderWeight::k, DecoderWeight::k_bias);
    Matrix v = project(n, DecoderWeight::v, DecoderWeight::v_bias);
    turn(q, DecoderWeight::q_norm);
    turn(k, DecoderWeight::k_norm);
    q = rounded(q, bits_);
    store(k);
    store(v);
    Matrix o(n.rows(), s_.q_size());
    parallel_for(s_.q_heads, n.size() < (std::int64_t{1} << 18) ? 1 : threads_, [&](std::int64_t head) {
      const std::int64_t kv_head = head / (s_.q_heads / s_.kv_heads);
      Matrix scores =
          q.middleCols(head * d, d) * k.middleCols(kv_head * d, d).transpose() / std::sqrt(static_cast<double>(d));
      scores.triangularView<Eigen::StrictlyUpper>().setConstant(-std::numeric_limits<double>::infinity());
      scores.colwise() -= scores.rowwise().maxCoeff().eval();
      scores = scores.array().exp();
      scores.array().colwise() /= scores.rowwise().sum().array().eval();
      o.middleCols(head * d, d) = scores * v.middleCols(kv_head * d, d);
    });
    return times(rounded(o, bits_), DecoderWeight::o);
  }

  const DecoderWeights& weights_;
  const DecoderShape& s_;
  std::int64_t layer_;
  DecoderBits bits_;
  int threads_;
};

}  // namespace

DecoderMatrix decoder_logits(const DecoderWeights& weights, std::span<const std::int32_t> tokens,
                             const DecoderBits& bits, std::int64_t skipped, int threads) {
  const DecoderShape& shape = weights.shape();
  Matrix h(std::ssize(tokens), shape.hidden);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    h.row(static_cast<Eigen::Index>(i)) = read(weights, {DecoderWeight::embedding, 0}, tokens[i], 1, 16);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) Layer(weights, layer, bits, threads).apply(h);
  const Matrix gain = read(weights, {DecoderWeight::final_norm, 0}, 0, 1, 16);
  const Matrix n = rounded(Layer(weights, 0, bits, threads).norm(h.bottomRows(h.rows() - skipped), gain.row(0)), bits);
  const DecoderWeight head = shape.tied_head ? DecoderWeight::embedding : DecoderWeight::head;
  return rounded(multiply(n, weights, {head, 0}, 16, threads), bits);
}

}  // namespace inferometer
