#include "harness/judge/tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace inferometer {
namespace {

constexpr double kUnitF32 = unit_roundoff(Dtype::f32);

// A short row may be small by chance while its error is not. With n independent elements the root mean square of a row
// fluctuates by 1 / sqrt(2 n) of itself, error and magnitude alike; eight over sqrt(n) is beyond five deviations of
// each. Rows of fewer than 8 elements are left to the other two criteria.
double row_tolerance(double rel_l2, std::int64_t elements) {
  if (elements < 8) return std::numeric_limits<double>::infinity();
  return rel_l2 * (1.0 + 8.0 / std::sqrt(static_cast<double>(elements)));
}

constexpr double kLargestNormal = 5.5;  // of 10^7, over their root mean square

}  // namespace

// Rounded to nearest, the errors of n additions are independent, each at most u = 2^-24 of the partial sum then held:
// a random walk of at most sqrt(n) u (Higham, "Accuracy and Stability of Numerical Algorithms", section 2.8).
// Tensor cores add 16 products at a time and truncate, so that each step takes up to 2 u, u on average, off the partial
// sum, always towards zero. The partial sum is half of the result on average: n / 16 steps shrink it by n / 32 u.
// u once more for rounding the products themselves, which are exact for 16-bit values only.
double accumulation_error(std::int64_t terms) {
  const auto n = static_cast<double>(terms);
  return kUnitF32 * (1.0 + std::sqrt(n) + n / 32.0);
}

// Rounding the result: at most u of each element. To that the accumulation adds its error relative to the root mean
// square of all results. Elements of a normal sample of 10^7 stay within 5.5 root mean squares, and so do their errors.
Tolerance dot_product_tolerance(Dtype stored, std::int64_t terms, std::int64_t row_elements) {
  const double relative = unit_roundoff(stored) + accumulation_error(terms);
  return {.rel_l2 = relative,
          .max_error_over_rms = kLargestNormal * relative,
          .row_rel_l2 = row_tolerance(relative, row_elements)};
}

// Chernoff's bound: a sum Y exceeds y with a probability of at most E[exp(t Y)] exp(-t y), for any t. Set to
// exp(-5.5^2 / 2), what the same bound gives for a normal Y of 5.5 root mean squares, and solved for y; the least over
// t is the best.
// The product of a standard normal value and a normal weight of variance v has E[exp(t x w)] = (1 - t^2 v)^(-1/2); a
// weight that is an outlier by chance has the mean of its two cases, and terms are independent. Of few columns one may
// be an outlier, which is worse than none: there is at least one.
// (y(t) falls, then rises: log E[exp(t Y)] is convex. So the least is found by thirds.)
double largest_over_rms(std::int64_t terms, const HeavyTails& tails) {
  const double outlier = tails.outlier_factor * tails.outlier_factor;  // times the variance
  const double column = tails.column_factor * tails.column_factor;
  const auto columns = static_cast<double>(terms);
  const double wide =
      tails.column_share == 0 ? 0 : std::min(columns, std::max(1.0, std::round(columns * tails.column_share)));
  const double mean_variance = 1 + tails.outlier_share * (outlier - 1);
  const double rms = std::sqrt((columns - wide + wide * column) * mean_variance);

  const auto log_mean_exp = [&](double t, double variance) {
    return std::log((1 - tails.outlier_share) / std::sqrt(1 - t * t * variance) +
                    tails.outlier_share / std::sqrt(1 - t * t * variance * outlier));
  };
  const auto bound = [&](double t) {
    double exponent = kLargestNormal * kLargestNormal / 2;
    if (wide < columns) exponent += (columns - wide) * log_mean_exp(t, 1);
    if (wide > 0) exponent += wide * log_mean_exp(t, column);
    return exponent / (t * rms);
  };
  constexpr int kSteps = 100;  // (2 / 3)^100 of the interval
  double low = 0;
  double high = 1 / std::sqrt(outlier * (wide > 0 ? column : 1.0));
  for (int step = 0; step < kSteps; ++step) {
    const double third = (high - low) / 3;
    if (bound(low + third) < bound(high - third))
      high -= third;
    else
      low += third;
  }
  return bound((low + high) / 2);
}

// O_i = sum_j p_j v_j / sum_j p_j with p_j = exp(s_j - m).
//  - Rounding p_j to dtype before P V errs by e_j p_j, |e_j| <= u. The v_j are independent, so the error is at most
//    u sqrt(sum p_j^2 |v_j|^2) / l, that is u |O_i|. (l sums the p_j before they are rounded.)
//  - Rounding O_i errs by at most u |O_i|.
//  - A kernel that stores S in dtype errs by up to u |s_j| in s_j, hence relatively so in p_j. Weighted with p_j^2,
//    standard normal scores have a root mean square of sqrt(5). Rounding errors are spread within their bounds: the
//    root mean square of one is 0.42 of it. All three together: 0.42 u sqrt(1 + 1 + 5) = 1.1 u. The sum of the two
//    bounds above, 2 u, holds this kernel as well.
//  - In f32: s_j sums head_dim products, an absolute error of accumulation_error(head_dim) for scores of standard
//    deviation 1; exp of an argument up to 8 in base 2, 8 u by the argument and 4 u by ex2.approx; P V and l sum `keys`
//    terms each; one rescaling of 2 u for each of some ten rises of the running maximum.
// An element of O within 5.5 root mean squares of its row takes 5.5 u by its own rounding, and 5.5 deviations of the
// rounding of S and P, 5.5 * 0.42 sqrt(6) u = 5.7 u: 12 u, six times the relative bound.
Tolerance attention_output_tolerance(Dtype dtype, std::int64_t head_dim, std::int64_t keys, std::int64_t v_head_dim) {
  const std::int64_t row_elements = v_head_dim == 0 ? head_dim : v_head_dim;
  const double f32_steps = accumulation_error(head_dim) + 2.0 * accumulation_error(keys) + 32.0 * kUnitF32;
  const double relative = 2.0 * unit_roundoff(dtype) + f32_steps;
  return {
      .rel_l2 = relative, .max_error_over_rms = 6.0 * relative, .row_rel_l2 = row_tolerance(relative, row_elements)};
}

// L_i = m + log(l). The error is absolute: that of the scores, averaged with the weights p_j, and the relative error of
// l. Hence the magnitude it is set against is at least 1, the standard deviation of a score: with one key L_i = s_0,
// which may be near 0.
//  - s_j held in type `scores`: u |s_j|, for standard normal scores u on average and 5.5 u at most.
//  - s_j summed in f32 over head_dim products, l over `keys` terms; exp, log and the sum m + log(l) of up to 16: 32 u.
// The maximum over many rows, whose scores lie within 5.5 deviations: six times the mean.
Tolerance log_sum_exp_tolerance(Dtype scores, std::int64_t head_dim, std::int64_t keys) {
  const double f32_steps = accumulation_error(head_dim) + accumulation_error(keys) + 32.0 * kUnitF32;
  const double relative = (scores == Dtype::f32 ? 0.0 : unit_roundoff(scores)) + f32_steps;
  return {.rel_l2 = relative, .max_error_over_rms = 6.0 * relative, .rms_floor = 1.0};
}

}  // namespace inferometer
