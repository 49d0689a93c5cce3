#include "harness/measure/event_cost.hpp"
#include "harness/measure/gpu_kernels.hpp"

namespace inferometer {
namespace {

constexpr double kSpinsNs[] = {0, 10e3, 30e3, 100e3};

Device::Run spin_of(double ns) {
  return [ns](int, const Launch& launch) {
    if (ns == 0) return launch_empty(launch.stream);
    launch_spin(static_cast<std::int64_t>(ns), nullptr, launch.stream);
  };
}

}  // namespace

// All isolated times before the first that a profiler sees.
std::optional<EventCost> measure_event_cost(Device& gpu, std::string& absent) {
  MeasureConfig config{.min_samples = 100, .max_samples = 100, .max_seconds = 0.5};
  EventCost cost;
  for (const double ns : kSpinsNs)
    cost.kernels.push_back({.told_ns = ns, .isolated_ns = gpu.time(spin_of(ns), 1, config).isolated.median_ns});
  config.kernel_times = true;
  for (EventCost::Kernel& kernel : cost.kernels) {
    const Timing timing = gpu.time(spin_of(kernel.told_ns), 1, config);
    absent = timing.profiler_absent;
    if (!timing.profiler) return std::nullopt;
    cost.tool = timing.profiler->tool;
    kernel.profiler_ns = timing.profiler->median_ns;
  }
  return cost;
}

}  // namespace inferometer
