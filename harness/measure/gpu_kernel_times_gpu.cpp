// The launches of the isolated estimator once more, with a profiler attached that says how long their kernels took.
#include <algorithm>

#include "harness/measure/gpu_sampler.hpp"
#include "harness/measure/kernel_trace.hpp"
#include "harness/measure/rest.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/measure/stopping.hpp"
#include "harness/measure/stopwatch.hpp"

namespace inferometer {

// After the same warm-up and rest, and as many as there were: so the card comes to them in the same state. Throws
// ProfilerError.
ProfilerTiming GpuSampler::profiled(const Device::Run& run, const MeasureConfig& config,
                                    const IsolatedTiming& isolated) {
  const KernelTrace trace;
  if (isolated.median_ns < kLongLaunchSeconds * 1e9) warm_up(run, config);
  std::vector<double> between_events;
  std::vector<double> mhz;
  const Device::Run traced = [&](int set, const Launch& launch) {
    const KernelTrace::Launch part(static_cast<int>(between_events.size()));
    run(set, launch);
  };
  rest(config.rest_seconds);
  const Stopwatch watch;
  do {
    const Sample sample = take_sample(traced, config.cache);
    between_events.push_back(sample.ns);
    if (sample.sm_mhz) mhz.push_back(*sample.sm_mhz);
  } while (static_cast<int>(between_events.size()) < isolated.samples &&
           watch.seconds() < kIsolatedShare * config.max_seconds);

  LaunchTimes times = launch_times(trace.take(), static_cast<int>(between_events.size()));
  const std::vector<double> ascending = sorted_copy(times.launch_ns);
  ProfilerTiming timing{.tool = trace.tool(),
                        .samples = static_cast<int>(ascending.size()),
                        .median_ns = median(ascending),
                        .p5_ns = quantile(ascending, 0.05),
                        .p95_ns = quantile(ascending, 0.95),
                        .between_events_ns = median(sorted_copy(between_events)),
                        .sm_mhz_median = std::nullopt,
                        .kernels = std::move(times.kernels)};
  if (!mhz.empty()) timing.sm_mhz_median = median(sorted_copy(mhz));
  return timing;
}

void GpuSampler::add_profiler(const Device::Run& run, const MeasureConfig& config, Timing& timing) {
  try {
    timing.profiler = profiled(run, config, timing.isolated);
  } catch (const ProfilerError& error) {
    timing.profiler_absent = error.what();
  }
}

}  // namespace inferometer
