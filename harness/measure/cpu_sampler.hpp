// Times launches on the host's processors with the steady clock.
#pragma once

#include <map>
#include <optional>

#include "harness/measure/cpu_cache.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/timing.hpp"

namespace inferometer {

class CpuSampler {
 public:
  CpuSampler(CpuCacheClear& cache, Launch launch) : cache_(cache), launch_(launch) {}

  // As Device::time. In cold mode the caches are cleared before each isolated sample, and amortized launches rotate
  // over all sets, made where a turn over them fits; in warm mode both use set 0 alone. Clearing counts in max_seconds:
  // emptying a large cache before each sample of a short launch costs fewer samples, not minutes.
  Timing time(const Device::Run& run, const InputSets& sets, const MeasureConfig& config, double launched_seconds);

  Noise measure_noise();

 private:
  void warm_up(const Device::Run& run, const MeasureConfig& config);
  IsolatedTiming isolated(const Device::Run& run, const MeasureConfig& config, double launched_seconds);
  std::optional<AmortizedTiming> amortized(const Device::Run& run, const MeasureConfig& config, const InputSets& sets,
                                           double launch_ns);
  double empty_launch_ns(CacheMode cache);

  CpuCacheClear& cache_;
  Launch launch_;
  std::map<CacheMode, double> empty_launch_ns_;
};

}  // namespace inferometer
