// When to stop taking samples, and what they amount to. Shared by both devices.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "harness/measure/timing.hpp"

namespace inferometer {

// Stops when the median is known well enough, or when samples or seconds run out. The interval is looked at after
// sample counts that grow by a quarter, not after every sample: each further look is another chance to stop on a
// narrow interval met by luck, and each costs a sort.
class StoppingRule {
 public:
  explicit StoppingRule(const MeasureConfig& config) : config_(config) {}

  // "converged", "max_samples", "max_seconds", or empty to go on. `seconds`: spent since measuring began, cache
  // clearing counted in. The most seconds win over the least samples: a launch of minutes is measured once.
  std::string_view verdict(std::span<const double> samples, double seconds);

 private:
  MeasureConfig config_;
  std::size_t next_look_ = 0;
};

// Seconds of `config.max_seconds` that each estimator may use. Isolated samples also decide how often to repeat, so
// they come first and get most.
inline constexpr double kWarmUpShare = 0.1;
inline constexpr double kIsolatedShare = 0.65;
inline constexpr double kAmortizedShare = 0.25;

// A launch that takes this long does for the next one all that a warm-up could.
inline constexpr double kLongLaunchSeconds = 1.0;

// Samples taken without a warm-up, after a launch of more than kLongLaunchSeconds: whether the launches were in truth
// short, and the first took long over what is set up once. Then it warmed nothing, and they do not count.
bool needed_warm_up(const IsolatedTiming& timing);

// At least one sample. Below six samples no interval has 95 %: there is none, and the flag "few_samples".
IsolatedTiming summarize(std::span<const double> samples_ns, std::string_view stop_reason, CacheMode cache);

// Amortized below 50 us, where the cost of telling launches apart is no longer small; isolated from there on.
void choose_headline(Timing& timing);

}  // namespace inferometer
