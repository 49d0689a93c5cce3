// Order statistics of timing samples. Timings are skewed and have heavy tails, so nothing here assumes a distribution.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace inferometer {

struct Interval {
  double low = 0;
  double high = 0;
};

std::vector<double> sorted_copy(std::span<const double> samples);

// Quantile `q`, 0 <= q <= 1, of at least one ascending sample: linear between order statistics, definition 7 of Hyndman
// and Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50, 1996.
double quantile(std::span<const double> ascending, double q);
double median(std::span<const double> ascending);

// Median of |sample - center|, in any order of samples; at least one.
double median_absolute_deviation(std::span<const double> samples, double center);

// 1-based rank r of the 95 % confidence interval of the median of n samples: from the r-th smallest to the r-th
// largest. 0 when n is too small for 95 % (n < 6: both extremes miss the median with probability 2^(1 - n)).
std::size_t median_interval_rank(std::size_t n);

// Distribution-free 95 % confidence interval of the median; none below six samples.
std::optional<Interval> median_interval(std::span<const double> ascending);

}  // namespace inferometer
