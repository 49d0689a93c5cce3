#include "harness/measure/stopping.hpp"

#include <algorithm>

#include "harness/measure/statistics.hpp"

namespace inferometer {
namespace {

constexpr double kAmortizedBelowNs = 50e3;

double half_width_ratio(const Interval& interval, double center) {
  return center > 0 ? (interval.high - interval.low) / 2 / center : 0;
}

bool narrow_enough(std::span<const double> samples, double relative_ci) {
  const std::vector<double> ascending = sorted_copy(samples);
  const auto interval = median_interval(ascending);
  return interval && half_width_ratio(*interval, median(ascending)) <= relative_ci;
}

}  // namespace

std::string_view StoppingRule::verdict(std::span<const double> samples, double seconds) {
  if (samples.empty()) return {};
  const std::size_t n = samples.size();
  const bool samples_spent = n >= static_cast<std::size_t>(config_.max_samples);
  const bool seconds_spent = seconds >= config_.max_seconds;
  if (n >= static_cast<std::size_t>(config_.min_samples) && (n >= next_look_ || samples_spent || seconds_spent)) {
    if (narrow_enough(samples, config_.relative_ci)) return "converged";
    next_look_ = n + std::max<std::size_t>(n / 4, 1);
  }
  if (samples_spent) return "max_samples";
  return seconds_spent ? "max_seconds" : std::string_view{};
}

IsolatedTiming summarize(std::span<const double> samples_ns, std::string_view stop_reason, CacheMode cache) {
  const std::vector<double> ascending = sorted_copy(samples_ns);
  const double center = median(ascending);
  IsolatedTiming timing;
  timing.samples = static_cast<int>(ascending.size());
  timing.median_ns = center;
  timing.p5_ns = quantile(ascending, 0.05);
  timing.p95_ns = quantile(ascending, 0.95);
  timing.min_ns = ascending.front();
  timing.mad_ns = median_absolute_deviation(ascending, center);
  if (const auto interval = median_interval(ascending)) {
    timing.ci_low_ns = interval->low;
    timing.ci_high_ns = interval->high;
    timing.ci_half_width_ratio = half_width_ratio(*interval, center);
  } else {
    timing.flags.emplace_back("few_samples");
  }
  timing.stop_reason = stop_reason;
  timing.cache = cache;
  return timing;
}

bool needed_warm_up(const IsolatedTiming& timing) { return timing.min_ns < kLongLaunchSeconds * 1e9; }

void choose_headline(Timing& timing) {
  const bool amortized = timing.amortized && timing.amortized->mean_ns < kAmortizedBelowNs;
  timing.headline = amortized ? "amortized" : "isolated";
  timing.headline_ns = amortized ? timing.amortized->mean_ns : timing.isolated.median_ns;
}

}  // namespace inferometer
