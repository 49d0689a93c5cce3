// What two events add to the launch that they time: isolated medians beside a profiler's durations of the same kernels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"

namespace inferometer {

struct EventCost {
  struct Kernel {
    double told_ns = 0;  // how long it spins; 0: an empty kernel
    double isolated_ns = 0;
    double profiler_ns = 0;
    double added_ns() const { return isolated_ns - profiler_ns; }
  };

  std::string tool;
  std::vector<Kernel> kernels;

  double least_ns() const;
  double most_ns() const;
};

// An empty kernel and spin kernels of 10, 30 and 100 us. The last that is measured in a process: it attaches a
// profiler. None, with the reason in `absent`, where that cannot be had.
std::optional<EventCost> measure_event_cost(Device& gpu, std::string& absent);

}  // namespace inferometer
