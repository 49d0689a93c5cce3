#include "harness/measure/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace inferometer {
namespace {

constexpr double kTailProbability = 0.025;  // each side of a 95 % interval
constexpr double kTailDeviations = 1.959963984540054;
constexpr std::size_t kExactLimit = 1000;  // 2^-n is a normal double up to here

// Largest r with P(Binomial(n, 1/2) <= r - 1) <= 2.5 %: the chance that fewer than r samples lie below the median.
std::size_t exact_rank(std::size_t n) {
  double probability = std::ldexp(1.0, -static_cast<int>(n));  // of exactly `successes` samples below the median
  double cumulative = probability;
  std::size_t successes = 0;
  while (cumulative <= kTailProbability) {
    ++successes;
    probability *= static_cast<double>(n - successes + 1) / static_cast<double>(successes);
    cumulative += probability;
  }
  return successes;
}

}  // namespace

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> ascending(samples.begin(), samples.end());
  std::sort(ascending.begin(), ascending.end());
  return ascending;
}

double quantile(std::span<const double> ascending, double q) {
  const double position = q * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  return std::lerp(ascending[below], ascending[above], position - static_cast<double>(below));
}

double median(std::span<const double> ascending) { return quantile(ascending, 0.5); }

double median_absolute_deviation(std::span<const double> samples, double center) {
  std::vector<double> deviations;
  deviations.reserve(samples.size());
  for (const double sample : samples) deviations.push_back(std::abs(sample - center));
  std::sort(deviations.begin(), deviations.end());
  return median(deviations);
}

std::size_t median_interval_rank(std::size_t n) {
  if (n <= kExactLimit) return exact_rank(n);
  // The binomial's normal approximation with continuity correction: mean n / 2, standard deviation sqrt(n) / 2. Rounded
  // down, so the interval errs on the wide side.
  const auto count = static_cast<double>(n);
  return static_cast<std::size_t>((count + 1 - kTailDeviations * std::sqrt(count)) / 2);
}

std::optional<Interval> median_interval(std::span<const double> ascending) {
  const std::size_t rank = median_interval_rank(ascending.size());
  if (rank == 0) return std::nullopt;
  return Interval{ascending[rank - 1], ascending[ascending.size() - rank]};
}

}  // namespace inferometer
