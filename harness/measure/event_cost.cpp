#include "harness/measure/event_cost.hpp"

#include <algorithm>
#include <stdexcept>

namespace inferometer {
namespace {

bool adds_less(const EventCost::Kernel& a, const EventCost::Kernel& b) { return a.added_ns() < b.added_ns(); }

}  // namespace

double EventCost::least_ns() const { return std::min_element(kernels.begin(), kernels.end(), adds_less)->added_ns(); }

double EventCost::most_ns() const { return std::max_element(kernels.begin(), kernels.end(), adds_less)->added_ns(); }

#ifndef INFEROMETER_WITH_CUDA
std::optional<EventCost> measure_event_cost(Device& /*gpu*/, std::string& /*absent*/) {
  throw std::logic_error("measure_event_cost: this build has no CUDA, and so no GPU to measure on");
}
#endif

}  // namespace inferometer
