#include "reference/rms_norm/expected.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

#include "harness/judge/sample.hpp"
#include "harness/judge/tolerance.hpp"
#include "harness/operator/parallel.hpp"

namespace inferometer {
namespace {

using Problem = RmsNormProblem;

constexpr std::int64_t kMostElements = std::int64_t{1} << 21;  // of the sample: a few hundredths of a second

// What a tensor of `dtype` holds of a value.
double stored(Dtype dtype, float value) {
  return dtype == Dtype::f16 ? f16_value(f16_bits(value)) : bf16_value(bf16_bits(value));
}

// H' where there is a residual stream, else X.
std::vector<double> normed_row(const Problem& p, const Inputs& inputs, std::int64_t row) {
  const std::vector<float> x = inputs.read("x", row * p.hidden, p.hidden);
  if (!p.residual) return {x.begin(), x.end()};
  const std::vector<float> h = inputs.read("h", row * p.hidden, p.hidden);
  std::vector<double> sum(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] = stored(p.dtype, h[i] + x[i]);  // in f32, as problem.hpp says
  return sum;
}

}  // namespace

std::vector<ExpectedSpan> expect_rms_norm(const RmsNormProblem& problem, const Inputs& inputs, std::uint64_t seed,
                                          int threads) {
  const std::vector<std::int64_t> rows =
      sample_rows(problem.rows, std::clamp<std::int64_t>(kMostElements / problem.hidden, 16, 1024), seed);
  const std::vector<float> w = inputs.read("w", 0, problem.hidden);
  std::vector<ExpectedSpan> y(rows.size());
  std::vector<ExpectedSpan> h_sum(problem.residual ? rows.size() : 0);
  parallel_for(std::ssize(rows), threads, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t begin = rows[at] * problem.hidden;
    std::vector<double> row = normed_row(problem, inputs, rows[at]);
    if (problem.residual) h_sum[at] = {.tensor = "h_sum", .begin = begin, .values = row};
    double squares = 0;
    for (const double element : row) squares += element * element;
    const double root = std::sqrt(squares / static_cast<double>(problem.hidden) + problem.eps);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = row[j] / root * w[j];
    y[at] = {.tensor = "y", .begin = begin, .values = std::move(row)};
  });
  y.insert(y.end(), std::make_move_iterator(h_sum.begin()), std::make_move_iterator(h_sum.end()));
  return y;
}

// Squares are summed in f32 over the row, and the result is rounded: a dot product's error. Beside it a kernel may keep
// H' unrounded for the norm, and may round the normed row before the product with W, as Llama's own code does: u each,
// three in all for one element. Spread within their bounds, the three come to 0.42 sqrt(3) u = 0.73 u root mean square:
// less than the u that the dot product has. H' is a sum of two, rounded once. What is rounded to a subnormal number
// errs as the least normal one does.
Tolerance rms_norm_tolerance(const RmsNormProblem& problem, std::string_view tensor) {
  const bool is_sum = tensor == "h_sum";
  Tolerance tolerance = dot_product_tolerance(problem.dtype, is_sum ? 2 : problem.hidden, problem.hidden);
  if (!is_sum) tolerance.max_error_over_rms *= 3;
  tolerance.rms_floor = problem.dtype == Dtype::f16 ? 0x1p-14 : 0x1p-126;
  return tolerance;
}

}  // namespace inferometer
