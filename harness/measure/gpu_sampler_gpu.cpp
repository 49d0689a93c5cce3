#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "harness/measure/gpu_sampler.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/measure/stopping.hpp"

namespace inferometer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNsPerSecond = 1e9;
constexpr double kWarmUpSeconds = 0.03;  // an idle GPU takes some milliseconds to raise its clocks
constexpr double kBatchNs = 20e6;        // longer launches are waited for singly, so that max_seconds is kept
constexpr double kLeastLeadNs = 20e3;    // covers two event records and a launch
constexpr double kMostLeadNs = 2e6;      // of a launch that queues hundreds of kernels
constexpr double kClockMovedRatio = 0.05;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

int batch_size(double launch_ns, int most) {
  return static_cast<int>(std::clamp(kBatchNs / std::max(launch_ns, 1.0), 1.0, static_cast<double>(most)));
}

}  // namespace

GpuSampler::GpuSampler(const Launch& launch, std::size_t l2_bytes, const Nvml& nvml)
    : launch_(launch),
      nvml_(nvml),
      clear_(l2_bytes, launch.stream),
      clocks_(make_device_memory(kBatch * sizeof(ClockSample))),
      slots_(kBatch) {
  // Loads the kernel now: loading waits for the GPU, which must not happen with a lead kernel in the queue.
  launch_spin(1, nullptr, launch_.stream);
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch_.stream));
}

void GpuSampler::queue_lead(CacheMode cache, ClockSample* clock) {
  const double lead_ns = std::clamp(2 * host_ns_, kLeastLeadNs, kMostLeadNs);
  if (cache == CacheMode::warm) {
    launch_spin(static_cast<std::int64_t>(lead_ns), clock, launch_.stream);
    return;
  }
  // The clearing takes longer than the least lead; launches of many kernels need more before it.
  if (lead_ns > kLeastLeadNs) launch_spin(static_cast<std::int64_t>(lead_ns), nullptr, launch_.stream);
  clear_.queue(clock);
}

void GpuSampler::take_batch(const Device::Run& run, int count, CacheMode cache, Samples& samples) {
  auto* const clocks = static_cast<ClockSample*>(clocks_.get());
  for (int i = 0; i < count; ++i) {
    queue_lead(cache, clocks + i);
    const Clock::time_point queued = Clock::now();
    INFEROMETER_CUDA_CHECK(cudaEventRecord(slots_[i].start.get(), launch_.stream));
    run(0, launch_);
    INFEROMETER_CUDA_CHECK(cudaEventRecord(slots_[i].stop.get(), launch_.stream));
    host_ns_ = std::min(host_ns_, kNsPerSecond * seconds_since(queued));
  }
  std::array<ClockSample, kBatch> read;
  INFEROMETER_CUDA_CHECK(
      cudaMemcpyAsync(read.data(), clocks, count * sizeof(ClockSample), cudaMemcpyDeviceToHost, launch_.stream));
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch_.stream));
  for (int i = 0; i < count; ++i) {
    samples.ns.push_back(elapsed_ns(slots_[i].start, slots_[i].stop));
    if (read[i].nanoseconds > 0)
      samples.sm_mhz.push_back(1e3 * static_cast<double>(read[i].cycles) / static_cast<double>(read[i].nanoseconds));
  }
  for (std::string& limit : nvml_.clock_limits())
    if (std::find(samples.limits.begin(), samples.limits.end(), limit) == samples.limits.end())
      samples.limits.push_back(std::move(limit));
}

// Loads the modules, raises the clocks, learns how long the host takes to queue a launch. Returns the time of one.
double GpuSampler::warm_up(const Device::Run& run, const MeasureConfig& config) {
  const double budget = std::min(kWarmUpSeconds, kWarmUpShare * config.max_seconds);
  const Clock::time_point start = Clock::now();
  run(0, launch_);
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch_.stream));
  double launch_ns = kNsPerSecond * seconds_since(start);
  host_ns_ = launch_ns;
  do {
    Samples samples;
    take_batch(run, batch_size(launch_ns, kBatch), config.cache, samples);
    launch_ns = median(sorted_copy(samples.ns));
  } while (seconds_since(start) < budget);
  return launch_ns;
}

IsolatedTiming GpuSampler::isolated(const Device::Run& run, const MeasureConfig& config, double launch_ns) {
  MeasureConfig share = config;
  share.max_seconds *= kIsolatedShare;
  StoppingRule rule(share);
  Samples samples;
  const Clock::time_point start = Clock::now();
  std::string_view verdict;
  while (verdict.empty()) {
    const int left = std::max(config.max_samples - static_cast<int>(samples.ns.size()), 1);
    take_batch(run, batch_size(launch_ns, std::min(left, kBatch)), config.cache, samples);
    verdict = rule.verdict(samples.ns, seconds_since(start));
  }
  IsolatedTiming timing = summarize(samples.ns, verdict, config.cache);
  timing.flags = samples.limits;
  if (!samples.sm_mhz.empty()) {
    const std::vector<double> mhz = sorted_copy(samples.sm_mhz);
    timing.sm_mhz_median = median(mhz);
    if (mhz.back() - mhz.front() > kClockMovedRatio * *timing.sm_mhz_median) timing.flags.emplace_back("clock_moved");
  }
  return timing;
}

Timing GpuSampler::time(const Device::Run& run, int sets, const MeasureConfig& config) {
  const double launch_ns = warm_up(run, config);
  Timing timing;
  timing.isolated = isolated(run, config, launch_ns);
  const double empty_ns = empty_pair_ns(config.cache);
  const std::optional<LaunchGraph> one_launch = LaunchGraph::capture(run, 1, 1, launch_);
  if (one_launch && one_launch->nodes() == 0) {
    timing.suspect = true;
    timing.suspect_reason = "the launch put no work on its stream";
  } else {
    timing.amortized =
        amortized(run, config.cache == CacheMode::cold ? sets : 1, kAmortizedShare * config.max_seconds * kNsPerSecond,
                  timing.isolated.median_ns, one_launch);
    if (timing.amortized && !one_launch) timing.isolated.flags.emplace_back("amortized_without_graph");
    if (timing.isolated.median_ns <= empty_ns) {
      timing.suspect = true;
      timing.suspect_reason = "the launch takes no longer than two events with nothing between them (" +
                              std::to_string(empty_ns) + " ns): it did nothing, or is below the clock's resolution";
    }
  }
  choose_headline(timing);
  return timing;
}

// The 95th percentile of the time between two events with nothing between them.
double GpuSampler::empty_pair_ns(CacheMode cache) {
  const auto known = empty_pair_ns_.find(cache);
  if (known != empty_pair_ns_.end()) return known->second;
  Samples samples;
  for (int i = 0; i < 4; ++i) take_batch([](int, const Launch&) {}, kBatch, cache, samples);
  return empty_pair_ns_[cache] = quantile(sorted_copy(samples.ns), 0.95);
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
  const MeasureConfig config{.min_samples = 2 * kBatch, .max_samples = 2 * kBatch, .max_seconds = 0.2};

  Noise noise;
  noise.empty_launch_ns = isolated(empty, config, warm_up(empty, config)).median_ns;
  const double read_ns = warm_up(read, config);
  std::vector<double> medians;
  for (int i = 0; i < kRepeats; ++i) medians.push_back(isolated(read, config, read_ns).median_ns);
  const std::vector<double> ascending = sorted_copy(medians);
  noise.repeat_ratio = (ascending.back() - ascending.front()) / median(ascending);

  Samples samples;
  for (int i = 0; i < 4; ++i) take_batch(read, kBatch, CacheMode::cold, samples);
  const std::vector<double> values = sorted_copy(samples.ns);
  double step = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] > values[i - 1]) step = std::min(step, values[i] - values[i - 1]);
  noise.event_resolution_ns = std::isfinite(step) ? step : 0;
  return noise;
}

}  // namespace inferometer
