#include "harness/measure/cpu_sampler.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "harness/measure/cpu_ceilings.hpp"
#include "harness/measure/interruption.hpp"
#include "harness/measure/rest.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/measure/stopping.hpp"
#include "harness/measure/stopwatch.hpp"

namespace inferometer {
namespace {

constexpr double kWarmUpSeconds = 0.05;
constexpr int kMostTurns = 1 << 20;
constexpr double kBlockNs = 1e6;  // of launches between two clock reads: a read costs tens of nanoseconds
constexpr double kNsPerSecond = 1e9;

// Least step that the clock was seen to take, and so its own cost where it is finer than that.
double clock_step_ns() {
  double step = kNsPerSecond;
  for (int i = 0; i < 1000; ++i) {
    const Stopwatch watch;
    double elapsed = 0;
    while (elapsed <= 0) elapsed = watch.ns();
    step = std::min(step, elapsed);
  }
  return step;
}

// Times that a thread of this process was made to give up its processor.
long preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);  // cannot fail with these arguments
  return usage.ru_nivcsw;
}

// On a page of its own: as that of a launch, its code is in no cache after a clearing.
[[gnu::noinline, gnu::aligned(4096)]] void do_nothing(int /*set*/, const Launch& /*launch*/) { asm volatile(""); }

}  // namespace

Timing CpuSampler::time(const Device::Run& run, const InputSets& sets, const MeasureConfig& config,
                        double launched_seconds) {
  const bool launched_long = launched_seconds > kLongLaunchSeconds;
  if (!launched_long) warm_up(run, config);
  Timing timing;
  timing.isolated = isolated(run, config, launched_seconds);
  if (launched_long && needed_warm_up(timing.isolated)) {
    warm_up(run, config);
    timing.isolated = isolated(run, config, launched_seconds);
  }
  timing.amortized =
      amortized(run, config, config.cache == CacheMode::cold ? sets : InputSets{}, timing.isolated.median_ns);
  choose_headline(timing);
  const double empty = empty_launch_ns(config.cache);
  if (timing.isolated.median_ns <= empty) {
    timing.suspect = true;
    timing.suspect_reason = "the launch takes no longer than an empty one (" + std::to_string(empty) +
                            " ns): below the clock's resolution, or it does nothing";
  }
  return timing;
}

// Pages, branch predictors, the frequency and OpenMP's team. At least one launch.
void CpuSampler::warm_up(const Device::Run& run, const MeasureConfig& config) {
  const double budget_ns = std::min(kWarmUpSeconds, kWarmUpShare * config.max_seconds) * kNsPerSecond;
  const Stopwatch watch;
  do {
    run(0, launch_);
  } while (watch.ns() < budget_ns);
}

IsolatedTiming CpuSampler::isolated(const Device::Run& run, const MeasureConfig& config, double launched_seconds) {
  MeasureConfig share = config;
  share.max_seconds *= kIsolatedShare;
  StoppingRule rule(share);
  std::vector<double> samples;
  std::vector<double> preempted;                         // those samples during which a thread lost its processor
  if (config.cache == CacheMode::cold) cache_.buffer();  // its first use costs more than a clearing
  rest(config.rest_seconds);
  const Stopwatch whole;
  std::string_view verdict;
  while (verdict.empty()) {
    if (config.cache == CacheMode::cold) cache_.clear();
    const long before = preemptions();
    Stopwatch().ns();  // the clock's pages are in the TLB again after a system call
    const Stopwatch watch;
    run(0, launch_);
    samples.push_back(watch.ns());
    if (preemptions() != before) preempted.push_back(samples.back());
    verdict = rule.verdict(samples, whole.seconds());
  }
  IsolatedTiming timing = summarize(samples, verdict, config.cache);
  timing.rest_seconds = config.rest_seconds;
  if (is_interrupted(preempted, timing, launched_seconds * kNsPerSecond)) timing.flags.emplace_back("interrupted");
  return timing;
}

// The mean of the median block of launches: other programs that interrupt a few blocks do not move it. None when two
// turns over the sets would not fit.
std::optional<AmortizedTiming> CpuSampler::amortized(const Device::Run& run, const MeasureConfig& config,
                                                     const InputSets& sets, double launch_ns) {
  const double budget_ns = kAmortizedShare * config.max_seconds * kNsPerSecond;
  if (2 * sets.count * launch_ns > budget_ns) return std::nullopt;
  const int count = sets.made();
  rest(config.rest_seconds);
  const Stopwatch whole;
  const auto block_ns = [&](int turns) {
    const Stopwatch watch;
    for (int turn = 0; turn < turns; ++turn)
      for (int set = 0; set < count; ++set) run(set, launch_);
    return watch.ns();
  };
  if (count * launch_ns < kBlockNs) block_ns(1);  // first launches of the further sets would pass for a long turn
  int turns = 1;
  while (block_ns(turns) < kBlockNs && turns < kMostTurns) turns *= 2;  // also the warm-up
  std::vector<double> blocks;
  do {
    blocks.push_back(block_ns(turns));
  } while (whole.ns() < budget_ns);
  const int launches = turns * count;
  return AmortizedTiming{.launches = launches * static_cast<std::int64_t>(blocks.size()),
                         .mean_ns = median(sorted_copy(blocks)) / launches,
                         .input_sets = count};
}

// The 95th percentile of timing nothing, through the same call and after the same clearing as a launch. Where clearing
// takes long, of a few samples: one alone may be the shortest that there is.
double CpuSampler::empty_launch_ns(CacheMode cache) {
  const auto known = empty_launch_ns_.find(cache);
  if (known != empty_launch_ns_.end()) return known->second;
  const MeasureConfig warm{.cache = cache, .min_samples = 30, .max_samples = 100, .max_seconds = 0.2};
  const MeasureConfig cold{.cache = cache, .min_samples = 12, .max_samples = 12, .max_seconds = 10};
  return empty_launch_ns_[cache] = isolated(&do_nothing, cache == CacheMode::warm ? warm : cold, 0).p95_ns;
}

Noise CpuSampler::measure_noise() {
  constexpr int kRepeats = 5;
  const Device::Run arithmetic = [](int, const Launch& launch) {
#pragma omp parallel num_threads(launch.threads)
    multiply_add(2000);
  };
  const MeasureConfig config{.cache = CacheMode::warm, .min_samples = 30, .max_samples = 30, .max_seconds = 0.1};
  std::vector<double> medians(kRepeats);
  for (double& one : medians) {
    warm_up(arithmetic, config);
    one = isolated(arithmetic, config, 0).median_ns;
  }
  std::sort(medians.begin(), medians.end());
  return {.repeat_ratio = (medians.back() - medians.front()) / median(medians),
          .event_resolution_ns = clock_step_ns(),
          .empty_launch_ns = empty_launch_ns(CacheMode::warm)};
}

}  // namespace inferometer
