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
    ExpectedSpan* const of_segment = &spans[s * rows.size()];
    for (std::size_t r = 0; r < rows.size(); ++r)
      of_segment[r] = {.tensor = "y", .begin = rows[r] * p.n + begin, .values = {}};
    for (std::int64_t j = begin; j < end; ++j) {
      const std::vector<double> weights = read_weights(p, inputs, j);
      const Eigen::Map<const Eigen::VectorXd> w(weights.data(), p.k);
      for (std::int64_t r = 0; r < row_count; ++r) of_segment[r].values.push_back(x.col(r).dot(w));
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
