#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/measure/gpu_sampler.hpp"
#include "harness/measure/rest.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/measure/stopping.hpp"
#include "harness/measure/stopwatch.hpp"

namespace inferometer {
namespace {

constexpr double kWarmUpSeconds = 0.03;  // an idle GPU takes some milliseconds to raise its clocks
constexpr double kSetsSeconds = 0.25;    // of launching each further set once; heavy ones are not
constexpr double kLeastLeadNs = 20e3;    // covers two event records and a launch
constexpr double kMostLeadNs = 2e6;      // of a launch that queues hundreds of kernels
constexpr int kSamplesPerLook = 16;      // at the reasons for a lower clock: asking the driver takes a while
constexpr double kClockMovedRatio = 0.05;

void add_distinct(std::vector<std::string>& all, const std::vector<std::string>& more) {
  for (const std::string& text : more)
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
}

}  // namespace

GpuSampler::GpuSampler(const Launch& launch, std::size_t l2_bytes, const Nvml& nvml)
    : launch_(launch), nvml_(nvml), clear_(l2_bytes, launch.stream), clock_(make_device_memory(sizeof(ClockSample))) {
  // Loads the kernel now: loading waits for the GPU, which must not happen with a lead kernel in the queue.
  launch_spin(1, nullptr, launch_.stream);
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch_.stream));
}

void GpuSampler::queue_lead(CacheMode cache) {
  auto* const clock = static_cast<ClockSample*>(clock_.get());
  const double lead_ns = std::clamp(2 * host_ns_, kLeastLeadNs, kMostLeadNs);
  if (cache == CacheMode::warm) {
    launch_spin(static_cast<std::int64_t>(lead_ns), clock, launch_.stream);
    return;
  }
  // The clearing takes longer than the least lead; launches of many kernels need more before it.
  if (lead_ns > kLeastLeadNs) launch_spin(static_cast<std::int64_t>(lead_ns), nullptr, launch_.stream);
  clear_.queue(clock);
}

GpuSampler::Sample GpuSampler::take_sample(const Device::Run& run, CacheMode cache) {
  queue_lead(cache);
  const Stopwatch queueing;
  INFEROMETER_CUDA_CHECK(cudaEventRecord(start_.get(), launch_.stream));
  run(0, launch_);
  INFEROMETER_CUDA_CHECK(cudaEventRecord(stop_.get(), launch_.stream));
  host_ns_ = std::min(host_ns_, queueing.ns());
  ClockSample clock;
  INFEROMETER_CUDA_CHECK(cudaMemcpyAsync(&clock, clock_.get(), sizeof clock, cudaMemcpyDeviceToHost, launch_.stream));
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch_.stream));
  Sample sample;
  sample.ns = elapsed_ns(start_, stop_);
  if (clock.nanoseconds > 0)
    sample.sm_mhz = 1e3 * static_cast<double>(clock.cycles) / static_cast<double>(clock.nanoseconds);
  return sample;
}

// Launches each further set once as well: a first launch may do what a capture does not allow.
int GpuSampler::make_sets(const Device::Run& run, const InputSets& sets, double launched_seconds) {
  const int count = sets.made();
  const Stopwatch watch;
  for (int set = 1; set < count && launched_seconds + watch.seconds() < kSetsSeconds; ++set) {
    run(set, launch_);
    INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch_.stream));
  }
  return count;
}

// Loads the modules, raises the clocks, learns how long the host takes to queue a launch. One launch where that takes
// longer than all of it may.
void GpuSampler::warm_up(const Device::Run& run, const MeasureConfig& config) {
  const double budget = std::min(kWarmUpSeconds, kWarmUpShare * config.max_seconds);
  const Stopwatch watch;
  run(0, launch_);
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch_.stream));
  host_ns_ = watch.ns();
  while (watch.seconds() < budget) take_sample(run, config.cache);
}

IsolatedTiming GpuSampler::isolated(const Device::Run& run, const MeasureConfig& config) {
  MeasureConfig share = config;
  share.max_seconds *= kIsolatedShare;
  StoppingRule rule(share);
  std::vector<double> samples;
  std::vector<double> mhz;
  std::vector<std::string> flags;
  rest(config.rest_seconds);
  const Stopwatch watch;
  std::string_view verdict;
  while (verdict.empty()) {
    const Sample sample = take_sample(run, config.cache);
    samples.push_back(sample.ns);
    if (sample.sm_mhz) mhz.push_back(*sample.sm_mhz);
    verdict = rule.verdict(samples, watch.seconds());
    if (!verdict.empty() || samples.size() % kSamplesPerLook == 0) add_distinct(flags, nvml_.clock_limits());
  }
  IsolatedTiming timing = summarize(samples, verdict, config.cache);
  timing.rest_seconds = config.rest_seconds;
  timing.flags.insert(timing.flags.end(), flags.begin(), flags.end());
  if (!mhz.empty()) {
    std::sort(mhz.begin(), mhz.end());
    timing.sm_mhz_median = median(mhz);
    if (mhz.back() - mhz.front() > kClockMovedRatio * *timing.sm_mhz_median) timing.flags.emplace_back("clock_moved");
  }
  return timing;
}

Timing GpuSampler::time(const Device::Run& run, const InputSets& sets, const MeasureConfig& config,
                        double launched_seconds) {
  const int count = config.cache == CacheMode::cold ? make_sets(run, sets, launched_seconds) : 1;
  const bool launched_long = launched_seconds > kLongLaunchSeconds;
  if (launched_long) {
    host_ns_ = launched_seconds * 1e9;
  } else {
    warm_up(run, config);
  }
  Timing timing;
  timing.isolated = isolated(run, config);
  if (launched_long && needed_warm_up(timing.isolated)) {
    warm_up(run, config);
    timing.isolated = isolated(run, config);
  }
  const double empty_ns = empty_pair_ns(config.cache);
  const std::optional<LaunchGraph> one_launch = LaunchGraph::capture(run, 1, 1, launch_);
  if (one_launch && one_launch->nodes() == 0) {
    timing.suspect = true;
    timing.suspect_reason = "the launch put no work on its stream";
  } else {
    timing.amortized = amortized(run, config, count, timing.isolated.median_ns, one_launch);
    if (timing.amortized && !one_launch) timing.isolated.flags.emplace_back("amortized_without_graph");
    if (timing.isolated.median_ns <= empty_ns) {
      timing.suspect = true;
      timing.suspect_reason = "the launch takes no longer than two events with nothing between them (" +
                              std::to_string(empty_ns) + " ns): it did nothing, or is below the clock's resolution";
    }
  }
  choose_headline(timing);
  if (config.kernel_times) add_profiler(run, config, timing);
  return timing;
}

// The 95th percentile of the time between two events with nothing between them.
double GpuSampler::empty_pair_ns(CacheMode cache) {
  const auto known = empty_pair_ns_.find(cache);
  if (known != empty_pair_ns_.end()) return known->second;
  std::vector<double> samples(50);
  for (double& sample : samples) sample = take_sample([](int, const Launch&) {}, cache).ns;
  return empty_pair_ns_[cache] = quantile(sorted_copy(samples), 0.95);
}

Noise GpuSampler::measure_noise() {
  constexpr int kRepeats = 5;
  constexpr std::size_t kReadBytes = std::size_t{32} << 20;
  const CudaMemory data = make_device_memory(kReadBytes);
  const CudaMemory sink = make_device_memory(sizeof(std::uint32_t));
  launch_fill_random_bytes(data.get(), kReadBytes, /*key=*/2, launch_.stream);
  const Device::Run read = [&](int, const Launch& launch) {
    launch_read(data.get(), kReadBytes, static_cast<std::uint32_t*>(sink.get()), nullptr, launch.stream);
  };
  const Device::Run empty = [](int, const Launch& launch) { launch_empty(launch.stream); };
  const MeasureConfig config{.min_samples = 30, .max_samples = 30, .max_seconds = 0.2};

  Noise noise;
  warm_up(empty, config);
  noise.empty_launch_ns = isolated(empty, config).median_ns;
  warm_up(read, config);
  std::vector<double> medians(kRepeats);
  for (double& one : medians) one = isolated(read, config).median_ns;
  std::sort(medians.begin(), medians.end());
  noise.repeat_ratio = (medians.back() - medians.front()) / median(medians);

  // Of 100 times of one launch, the two nearest that differ.
  std::vector<double> times(100);
  for (double& one : times) one = take_sample(read, CacheMode::cold).ns;
  std::sort(times.begin(), times.end());
  double step = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < times.size(); ++i)
    if (times[i] > times[i - 1]) step = std::min(step, times[i] - times[i - 1]);
  noise.event_resolution_ns = std::isfinite(step) ? step : 0;
  return noise;
}

}  // namespace inferometer
