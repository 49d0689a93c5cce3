// Times launches on a GPU with events on one stream. CUDA builds only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_graph.hpp"
#include "harness/measure/gpu_handles.hpp"
#include "harness/measure/l2_clear.hpp"
#include "harness/measure/nvml.hpp"

namespace inferometer {

// Isolated samples: a lead kernel, an event, the launch, an event. The lead (clearing the L2 for cold samples, spinning
// for warm ones) keeps the GPU busy while the host queues the rest, so that no launch latency stands between the
// events; it also reads the SM clock. Samples are queued in small batches without a wait between them.
class GpuSampler {
 public:
  GpuSampler(const Launch& launch, std::size_t l2_bytes, const Nvml& nvml);

  // As Device::time. In cold mode amortized launches rotate over all sets, in warm mode both estimators use set 0.
  Timing time(const Device::Run& run, int sets, const MeasureConfig& config);
  Noise measure_noise();

  std::size_t pending_bytes() const { return clear_.pending_bytes(); }

 private:
  static constexpr int kBatch = 16;  // samples in flight: some 60 launches, far below the depth of a launch queue

  struct Samples {
    std::vector<double> ns;
    std::vector<double> sm_mhz;
    std::vector<std::string> limits;  // distinct
  };
  struct Slot {
    CudaEvent start = make_event();
    CudaEvent stop = make_event();
  };

  void queue_lead(CacheMode cache, ClockSample* clock);
  void take_batch(const Device::Run& run, int count, CacheMode cache, Samples& samples);
  double warm_up(const Device::Run& run, const MeasureConfig& config);
  IsolatedTiming isolated(const Device::Run& run, const MeasureConfig& config, double launch_ns);
  std::optional<AmortizedTiming> amortized(const Device::Run& run, int sets, double budget_ns, double launch_ns,
                                           const std::optional<LaunchGraph>& one_launch);
  double empty_pair_ns(CacheMode cache);

  Launch launch_;
  const Nvml& nvml_;
  L2Clear clear_;
  CudaMemory clocks_;  // ClockSample[kBatch]
  std::vector<Slot> slots_;
  double host_ns_ = 0;  // to queue one launch between its events, least seen in the warm-up
  std::map<CacheMode, double> empty_pair_ns_;
};

}  // namespace inferometer
