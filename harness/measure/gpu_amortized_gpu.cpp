// The amortized estimator: launches back to back over rotating sets, timed as one stretch.
#include <algorithm>

#include "harness/measure/gpu_sampler.hpp"
#include "harness/measure/rest.hpp"
#include "harness/measure/stopping.hpp"

namespace inferometer {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kStretchNs = 2e6;   // of one replay: a replay's own start, about 2 us, is then a thousandth
constexpr double kMostNodes = 2000;  // of one graph: instantiation takes about a microsecond each
constexpr double kMostReplays = 50;
constexpr double kMostQueued = 500;        // launches in a stream batch: within the depth of the launch queue
constexpr std::int64_t kLeadNs = 100'000;  // hides the first launch

}  // namespace

// None when two turns over the sets, one untimed, would not fit. `one_launch`: absent where launches cannot be
// captured.
std::optional<AmortizedTiming> GpuSampler::amortized(const Device::Run& run, const MeasureConfig& config, int sets,
                                                     double launch_ns, const std::optional<LaunchGraph>& one_launch) {
  const double budget_ns = kAmortizedShare * config.max_seconds * kNsPerSecond;
  const double turn_ns = std::max(sets * launch_ns, 1.0);
  if (2 * turn_ns > budget_ns) return std::nullopt;
  const double most_launches = one_launch ? kMostNodes / static_cast<double>(one_launch->nodes()) : kMostQueued;
  const int turns = static_cast<int>(std::max(std::min(kStretchNs / turn_ns, most_launches / sets), 1.0));
  const int launches = turns * sets;

  std::optional<LaunchGraph> graph;
  if (one_launch) graph = LaunchGraph::capture(run, sets, launches, launch_);
  if (graph) graph->instantiate(launch_);
  const auto queue_stretch = [&] {
    if (graph) return graph->queue(launch_);
    for (int i = 0; i < launches; ++i) run(i % sets, launch_);
  };

  const double stretch_ns = turns * turn_ns;
  const int replays = static_cast<int>(std::clamp(budget_ns / stretch_ns - 1, 1.0, graph ? kMostReplays : 1.0));
  rest(config.rest_seconds);
  launch_spin(kLeadNs, nullptr, launch_.stream);
  queue_stretch();  // brings caches and clocks into the state in which the timed ones find them
  INFEROMETER_CUDA_CHECK(cudaEventRecord(start_.get(), launch_.stream));
  for (int i = 0; i < replays; ++i) queue_stretch();
  INFEROMETER_CUDA_CHECK(cudaEventRecord(stop_.get(), launch_.stream));
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch_.stream));
  const int timed = launches * replays;
  return AmortizedTiming{.launches = timed, .mean_ns = elapsed_ns(start_, stop_) / timed, .input_sets = sets};
}

}  // namespace inferometer
