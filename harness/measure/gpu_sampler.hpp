// Times launches on a GPU with events on one stream. CUDA builds only.
#pragma once

#include <map>
#include <optional>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_graph.hpp"
#include "harness/measure/gpu_handles.hpp"
#include "harness/measure/l2_clear.hpp"
#include "harness/measure/nvml.hpp"

namespace inferometer {

// An isolated sample: a lead kernel, an event, the launch, an event; then the host waits. The lead (clearing the L2 for
// a cold sample, spinning for a warm one) keeps the GPU busy while the host queues the rest, so that no launch latency
// stands between the events; it also reads the SM clock. Queueing the next samples meanwhile would save little and
// disturb much: with 16 in flight an empty kernel took 3.3 us on an H200 and scattered by 1 us, with one 2.6 us.
class GpuSampler {
 public:
  GpuSampler(const Launch& launch, std::size_t l2_bytes, const Nvml& nvml);

  // As Device::time. In cold mode amortized launches rotate over all sets, made before any timing: a GPU that waits for
  // memory between two estimators cools. In warm mode both use set 0. A profiler, where one is asked for, comes last:
  // it stays in the process, and must not lengthen what the estimators time.
  Timing time(const Device::Run& run, const InputSets& sets, const MeasureConfig& config, double launched_seconds);
  Noise measure_noise();

  std::size_t pending_bytes() const { return clear_.pending_bytes(); }

 private:
  struct Sample {
    double ns = 0;
    std::optional<double> sm_mhz;  // none: the global timer did not move
  };

  void queue_lead(CacheMode cache);
  Sample take_sample(const Device::Run& run, CacheMode cache);
  int make_sets(const Device::Run& run, const InputSets& sets, double launched_seconds);
  void warm_up(const Device::Run& run, const MeasureConfig& config);
  IsolatedTiming isolated(const Device::Run& run, const MeasureConfig& config);
  std::optional<AmortizedTiming> amortized(const Device::Run& run, const MeasureConfig& config, int sets,
                                           double launch_ns, const std::optional<LaunchGraph>& one_launch);
  double empty_pair_ns(CacheMode cache);
  ProfilerTiming profiled(const Device::Run& run, const MeasureConfig& config, const IsolatedTiming& isolated);
  void add_profiler(const Device::Run& run, const MeasureConfig& config, Timing& timing);  // or why there is none

  Launch launch_;
  const Nvml& nvml_;
  L2Clear clear_;
  CudaMemory clock_;  // ClockSample
  CudaEvent start_ = make_event();
  CudaEvent stop_ = make_event();
  double host_ns_ = 0;  // to queue one launch between its events, least seen in the warm-up
  std::map<CacheMode, double> empty_pair_ns_;
};

}  // namespace inferometer
