// Tolerances against the roundings they are derived from, and against the errors they must catch.
#include "harness/judge/tolerance.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

double rounded(Dtype dtype, double value) {
  const auto single = static_cast<float>(value);
  if (dtype == Dtype::f16) return f16_value(f16_bits(single));
  if (dtype == Dtype::bf16) return bf16_value(bf16_bits(single));
  return single;
}

double relative_l2(const std::vector<double>& out, const std::vector<double>& exact) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    error += (out[i] - exact[i]) * (out[i] - exact[i]);
    norm += exact[i] * exact[i];
  }
  return std::sqrt(error / norm);
}

// One row of attention over `keys` standard normal scores and values, with the roundings of a kernel.
struct AttentionRow {
  std::vector<double> exact;
  std::vector<double> p_and_o_rounded;
  std::vector<double> all_rounded;    // S as well
  std::vector<double> block_missing;  // 64 keys left out of the sum, all else exact

  AttentionRow(Dtype dtype, int head_dim, int keys, std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    std::vector<double> s(static_cast<std::size_t>(keys));
    for (double& score : s) score = normal(random);
    std::vector<double> o(4 * static_cast<std::size_t>(head_dim));
    double l = 0;
    double l_rounded = 0;
    double l_missing = 0;
    for (std::size_t j = 0; j < s.size(); ++j) {
      const double p = std::exp(s[j] - 6);
      const double p_of_rounded = std::exp(rounded(dtype, s[j]) - 6);
      const double missing = j < 64 ? 0 : p;
      l += p;
      l_rounded += p_of_rounded;
      l_missing += missing;
      for (std::size_t i = 0; i < o.size(); i += 4) {
        const double v = normal(random);
        o[i] += p * v;
        o[i + 1] += rounded(dtype, p) * v;
        o[i + 2] += rounded(dtype, p_of_rounded) * v;
        o[i + 3] += missing * v;
      }
    }
    for (std::size_t i = 0; i < o.size(); i += 4) {
      exact.push_back(o[i] / l);
      p_and_o_rounded.push_back(rounded(dtype, o[i + 1] / l));
      all_rounded.push_back(rounded(dtype, o[i + 2] / l_rounded));
      block_missing.push_back(o[i + 3] / l_missing);
    }
  }
};

}  // namespace

TEST_CASE("tolerance: attention rounded as kernels round it passes, a missing block of 64 keys does not",
          "[judge][tolerance]") {
  std::mt19937_64 random(1);
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    for (const int head_dim : {8, 64, 128}) {
      for (const int keys : {80, 1024, 16384}) {
        CAPTURE(dtype_name(dtype), head_dim, keys);
        const Tolerance tolerance = attention_output_tolerance(dtype, head_dim, keys);
        const AttentionRow row(dtype, head_dim, keys, random);
        CHECK(relative_l2(row.p_and_o_rounded, row.exact) < tolerance.row_rel_l2);
        CHECK(relative_l2(row.all_rounded, row.exact) < tolerance.row_rel_l2);
        // 64 of n keys carry sqrt(64 / n) of the result: 6 % at 16384.
        CHECK(relative_l2(row.block_missing, row.exact) > tolerance.row_rel_l2);
      }
    }
  }
}

TEST_CASE("tolerance: attention is not judged ten times more loosely than its roundings are", "[judge][tolerance]") {
  std::mt19937_64 random(2);
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const AttentionRow row(dtype, 128, 2048, random);
    CHECK(10 * relative_l2(row.p_and_o_rounded, row.exact) > attention_output_tolerance(dtype, 128, 2048).rel_l2);
  }
}

TEST_CASE("tolerance: f32 attention computed in TF32 or with P in f16 does not pass", "[judge][tolerance]") {
  // TF32 keeps 10 bits behind the point, as f16 does: errors of 0.42 * 2^-11.
  const double error = 0.42 * unit_roundoff(Dtype::f16);
  CHECK(attention_output_tolerance(Dtype::f32, 128, 16384).rel_l2 < error);
  CHECK(attention_output_tolerance(Dtype::f32, 128, 16384).row_rel_l2 < error);
}

TEST_CASE("tolerance: a log-sum-exp without 64 of 16384 keys does not pass in f32", "[judge][tolerance]") {
  const double lse = std::log(16384.0) + 0.5;
  const double error = -std::log1p(-64.0 / 16384.0);
  CHECK(error / lse > log_sum_exp_tolerance(Dtype::f32, 128, 16384).rel_l2);
}

TEST_CASE("tolerance: f32 sums of products lie within the accumulation error", "[judge][tolerance]") {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  for (const int terms : {1, 16, 257, 4096, 65536}) {
    CAPTURE(terms);
    double error = 0;
    double norm = 0;
    for (int repeat = 0; repeat < 32; ++repeat) {
      float sum = 0;
      double exact = 0;
      for (int i = 0; i < terms; ++i) {
        const float a = normal(random);
        const float b = normal(random);
        sum += a * b;
        exact += static_cast<double>(a) * b;
      }
      error += (sum - exact) * (sum - exact);
      norm += exact * exact;
    }
    CHECK(std::sqrt(error / norm) < accumulation_error(terms));
    CHECK(20 * std::sqrt(error / norm) > accumulation_error(terms) - terms / 32.0 * 0x1p-24);  // truncation is not here
  }
}

TEST_CASE("tolerance: matmul accumulated in f16 or without one k tile does not pass", "[judge][tolerance]") {
  std::mt19937_64 random(4);
  std::normal_distribution<float> normal;
  constexpr int kTerms = 4096;
  std::vector<double> exact;
  std::vector<double> rounded_once;
  std::vector<double> rounded_always;
  std::vector<double> tile_missing;
  for (int n = 0; n < 64; ++n) {
    double sum = 0;
    double half_sum = 0;
    double missing = 0;
    for (int i = 0; i < kTerms; ++i) {
      const double product = rounded(Dtype::f16, normal(random)) * rounded(Dtype::f16, normal(random));
      sum += product;
      half_sum = rounded(Dtype::f16, half_sum + product);
      if (i >= 64) missing += product;
    }
    exact.push_back(sum);
    rounded_once.push_back(rounded(Dtype::f16, sum));
    rounded_always.push_back(half_sum);
    tile_missing.push_back(missing);
  }
  const Tolerance tolerance = dot_product_tolerance(Dtype::f16, kTerms, 64);
  CHECK(relative_l2(rounded_once, exact) < tolerance.rel_l2);
  CHECK(relative_l2(rounded_always, exact) > tolerance.row_rel_l2);
  CHECK(relative_l2(tile_missing, exact) > tolerance.row_rel_l2);
}

TEST_CASE("tolerance: the largest of many sums is bounded, more closely the more terms they have",
          "[judge][tolerance]") {
  CHECK(largest_over_rms(100'000) == Approx(5.5).epsilon(1e-3));
  const HeavyTails tails{
      .outlier_share = 1.0 / 256, .outlier_factor = 4, .column_share = 1.0 / 128, .column_factor = 3};
  CHECK(largest_over_rms(100'000, tails) == Approx(5.5).epsilon(1e-3));
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::bernoulli_distribution is_outlier(tails.outlier_share);
  for (const int terms : {1, 4, 16, 64}) {
    CAPTURE(terms);
    constexpr int kSums = 200'000;
    double largest = 0;
    double largest_of_tails = 0;
    double squares_of_tails = 0;
    for (int n = 0; n < kSums; ++n) {
      double sum = 0;
      double sum_of_tails = 0;
      for (int i = 0; i < terms; ++i) {
        const double product = normal(random) * normal(random);
        sum += product;
        sum_of_tails += product * (is_outlier(random) ? tails.outlier_factor : 1) * (i == 0 ? tails.column_factor : 1);
      }
      largest = std::max(largest, std::abs(sum));
      largest_of_tails = std::max(largest_of_tails, std::abs(sum_of_tails));
      squares_of_tails += sum_of_tails * sum_of_tails;
    }
    largest /= std::sqrt(terms);
    largest_of_tails /= std::sqrt(squares_of_tails / kSums);
    CHECK(largest < largest_over_rms(terms));
    CHECK(largest > 0.6 * largest_over_rms(terms));  // of fewer sums than the bound is for
    CHECK(largest_of_tails < largest_over_rms(terms, tails));
    CHECK(largest_of_tails > 0.3 * largest_over_rms(terms, tails));  // of 10^7 sums of 16 terms: 21.5, 0.59 of it
    CHECK(largest_over_rms(terms) < largest_over_rms(terms, tails));
  }
}

TEST_CASE("tolerance: rows too short for statistics are not judged by themselves", "[judge][tolerance]") {
  CHECK(std::isinf(dot_product_tolerance(Dtype::f16, 64, 7).row_rel_l2));
  CHECK(std::isfinite(dot_product_tolerance(Dtype::f16, 64, 8).row_rel_l2));
}
