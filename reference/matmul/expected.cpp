#include "reference/matmul/expected.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "harness/judge/sample.hpp"
#include "harness/judge/tolerance.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/common/eigen.hpp"
#include "reference/matmul/token_codes.hpp"
#include "reference/matmul/weights.hpp"

namespace inferometer {
namespace {

using Problem = MatmulProblem;

// Y is judged in pieces of its rows, cut where kernels cut tiles. The last piece of a row takes what is left over, so
// that none but a whole row is shorter and the error of each can be set against its own magnitude.
constexpr std::int64_t kSegment = 64;

constexpr std::int64_t kPieceDepth = 128;  // of a W stored [k, n], that is held at once

// Products of all tokens, the columns of `x`, with rows begin, ..., end - 1 of W: [rows, tokens].
Eigen::MatrixXd multiply_rows(const Problem& p, const Inputs& inputs, const Eigen::MatrixXd& x, std::int64_t begin,
                              std::int64_t end) {
  Eigen::MatrixXd sums = Eigen::MatrixXd::Zero(end - begin, x.cols());
  if (p.w_transposed) {
    Eigen::MatrixXd piece(end - begin, kPieceDepth);
    for (std::int64_t k = 0; k < p.k; k += kPieceDepth) {
      const std::int64_t depth = std::min(kPieceDepth, p.k - k);
      for (std::int64_t i = 0; i < depth; ++i) {
        const std::vector<float> row = inputs.read("w", (k + i) * p.n + begin, end - begin);
        piece.col(i) = Eigen::Map<const Eigen::VectorXf>(row.data(), end - begin).cast<double>();
      }
      sums.noalias() += piece.leftCols(depth) * x.middleRows(k, depth);
    }
    return sums;
  }
  for (std::int64_t j = begin; j < end; ++j) {
    const std::vector<double> weights = read_weights(p, inputs, j);
    const Eigen::Map<const Eigen::VectorXd> w(weights.data(), p.k);
    for (std::int64_t r = 0; r < x.cols(); ++r) sums(j - begin, r) = x.col(r).dot(w);
  }
  return sums;
}

}  // namespace

std::vector<double> read_token(const Problem& p, const Inputs& inputs, std::int64_t i) {
  const std::vector<float> token = inputs.read("x", i * p.k, p.k);
  if (p.activation_bits == 16) return {token.begin(), token.end()};
  std::vector<std::int8_t> codes(token.size());
  const double scale = quantize_token(token, codes);
  std::vector<double> values(token.size());
  std::transform(codes.begin(), codes.end(), values.begin(), [scale](std::int8_t code) { return scale * code; });
  return values;
}

std::vector<ExpectedSpan> expect_matmul(const Problem& p, const Inputs& inputs, std::uint64_t seed, int threads) {
  constexpr std::int64_t kMultiplyAdds = std::int64_t{1} << 29;  // about 0.1 s of one core
  constexpr std::int64_t kReadCost = 16;  // multiply-adds in the time in which one input is regenerated
  const auto rows = sample_rows(p.m, std::clamp<std::int64_t>(kMultiplyAdds / p.n / p.k, 32, 1024), seed);
  const auto row_count = static_cast<std::int64_t>(rows.size());
  const std::int64_t segment_count = std::max<std::int64_t>(1, p.n / kSegment);
  const auto segments = sample_rows(
      segment_count, std::clamp<std::int64_t>(kMultiplyAdds / (row_count + kReadCost) / kSegment / p.k, 16, 1024),
      seed + 1);

  Eigen::MatrixXd x(p.k, row_count);  // one token per column
  for (std::int64_t r = 0; r < row_count; ++r) {
    const std::vector<double> token = read_token(p, inputs, rows[static_cast<std::size_t>(r)]);
    x.col(r) = Eigen::Map<const Eigen::VectorXd>(token.data(), p.k);
  }
  std::vector<ExpectedSpan> spans(rows.size() * segments.size());
  parallel_for(std::ssize(segments), threads, [&](std::int64_t segment) {
    const auto s = static_cast<std::size_t>(segment);
    const std::int64_t begin = segments[s] * kSegment;
    const std::int64_t end = segments[s] + 1 == segment_count ? p.n : begin + kSegment;
    const Eigen::MatrixXd sums = multiply_rows(p, inputs, x, begin, end);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto values = sums.col(static_cast<std::int64_t>(r));
      spans[s * rows.size() + r] = {
          .tensor = "y", .begin = rows[r] * p.n + begin, .values = {values.begin(), values.end()}};
    }
  });
  return spans;
}

// 16-bit activations: codes and zero points are integers of at most 8 bits, so that q - z is exact in f16 and in bf16;
// a kernel that multiplies it with the scale before the product rounds each weight once to dtype, by at most u of it.
// The products are independent: relative to the root mean square of Y these roundings come to at most u, as the
// rounding of Y does. Together at most sqrt(2) u.
// 8-bit activations: the codes are those of the reference, the sum is exact up to its conversion to f32; three f32
// roundings, then that of Y.
// Errors are in proportion to the products that make an element, and so is the largest of them: of few terms, all the
// more where one of them is an outlier, it is many times the root mean square.
Tolerance matmul_tolerance(const Problem& p, std::string_view) {
  const std::int64_t row_elements = std::min(p.n, kSegment);
  Tolerance tolerance = dot_product_tolerance(p.dtype, p.activation_bits == 8 ? 16 : p.k, row_elements);
  tolerance.max_error_over_rms =
      tolerance.rel_l2 * largest_over_rms(p.k, p.is_quantized() ? kSyntheticTails : HeavyTails{});
  if (!p.is_quantized() || p.activation_bits == 8) return tolerance;
  const double more = 1 + (std::sqrt(2.0) - 1) * unit_roundoff(p.dtype) / tolerance.rel_l2;
  tolerance.rel_l2 *= more;
  tolerance.max_error_over_rms *= more;
  tolerance.row_rel_l2 *= more;
  return tolerance;
}

}  // namespace inferometer
