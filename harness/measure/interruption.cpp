#include "harness/measure/interruption.hpp"

#include <algorithm>

namespace inferometer {

bool is_interrupted(std::span<const double> preempted_ns, const IsolatedTiming& timing, double launched_ns) {
  constexpr double kLonger = 0.1;
  constexpr double kMostInterrupted = 0.05;  // of the samples
  double fastest_ns = timing.min_ns;
  if (timing.samples == 1 && launched_ns > 0) fastest_ns = std::min(fastest_ns, launched_ns);
  const auto interrupted = std::count_if(preempted_ns.begin(), preempted_ns.end(),
                                         [&](double sample) { return sample > (1 + kLonger) * fastest_ns; });
  return static_cast<double>(interrupted) > kMostInterrupted * timing.samples;
}

}  // namespace inferometer
