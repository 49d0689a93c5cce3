// What a measurement is asked for and what it answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace inferometer {

enum class CacheMode : std::uint8_t { cold, warm };

struct MeasureConfig {
  CacheMode cache = CacheMode::cold;
  int min_samples = 30;
  int max_samples = 2000;
  // Of measuring, rests not counted. Reached, it stops with what it has, be it fewer than min_samples.
  double max_seconds = 2.0;
  double relative_ci = 0.005;  // wanted half width of the median's 95 % confidence interval, as a share of the median
  double rest_seconds = 0;     // without work before each estimator, so that no row starts as hot as the last one ended
  bool kernel_times = false;   // GPU: launch as the isolated estimator does once more, with a profiler attached
};

// One launch at a time, each between two clock reads.
struct IsolatedTiming {
  int samples = 0;
  double median_ns = 0;
  double p5_ns = 0;
  double p95_ns = 0;
  double min_ns = 0;
  double mad_ns = 0;  // median absolute deviation from the median
  // 95 % confidence interval of the median, and half its width over the median. None below six samples ("few_samples").
  std::optional<double> ci_low_ns;
  std::optional<double> ci_high_ns;
  std::optional<double> ci_half_width_ratio;
  std::string stop_reason;  // "converged", "max_samples", "max_seconds"
  CacheMode cache = CacheMode::cold;
  double rest_seconds = 0;              // without work before the first sample
  std::optional<double> sm_mhz_median;  // GPU
  // "clock_moved", "power_limited", ... (GPU), "interrupted" (CPU: other programs took a processor away during more
  // than one sample in twenty and made it longer), "few_samples" (no confidence interval). Said, never used to drop a
  // sample.
  std::vector<std::string> flags;
};

// Many launches back to back over input sets that together exceed twice the cache.
struct AmortizedTiming {
  std::int64_t launches = 0;
  double mean_ns = 0;
  int input_sets = 0;
  CacheMode cache = CacheMode::cold;  // warm: the sets that fit into memory stay in the cache; set by the row runner
};

// Kernels of one name, or copies, or fills, in a launch.
struct KernelTime {
  std::string name;
  int count = 0;       // in one launch
  double mean_ns = 0;  // of one of them
};

// What a profiler, attached after both estimators, says of launches made as the isolated estimator makes them.
struct ProfilerTiming {
  std::string tool;  // "CUPTI 13.0"
  int samples = 0;
  // Of a launch: from the beginning of its first kernel to the end of its last.
  double median_ns = 0;
  double p5_ns = 0;
  double p95_ns = 0;
  double between_events_ns = 0;  // the same launches between two events, median: what attaching changed, see isolated
  std::optional<double> sm_mhz_median;
  std::vector<KernelTime> kernels;  // of a launch, in the order in which they begin
};

struct Timing {
  std::string headline;  // "isolated" or "amortized": the figure that rates and speed-ups are made of
  double headline_ns = 0;
  IsolatedTiming isolated;
  std::optional<AmortizedTiming> amortized;
  bool suspect = false;  // below the clock's resolution, or a launch that launched nothing
  std::string suspect_reason;
  std::optional<ProfilerTiming> profiler = std::nullopt;
  std::string profiler_absent = {};  // why there is none although it was asked for
};

}  // namespace inferometer
