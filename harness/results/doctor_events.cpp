#include "harness/results/doctor_events.hpp"

#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

constexpr double kAlikeNs = 100;  // below the tick of some GPUs' clocks

std::string added(const EventCost& cost) {
  if (cost.most_ns() - cost.least_ns() < kAlikeNs) return shown_time(cost.most_ns());
  return shown_time(cost.least_ns()) + " to " + shown_time(cost.most_ns());
}

}  // namespace

Finding event_cost_finding(const Diagnosis& diagnosis) {
  const std::string topic = "GPU events";
  if (!diagnosis.event_cost) {
    return {.severity = Severity::advice,
            .topic = topic,
            .sentence = "what two events add to a launch is not known: " + diagnosis.event_cost_absent};
  }
  return {.severity = Severity::good,
          .topic = topic,
          .sentence = "two events add " + added(*diagnosis.event_cost) + " to a launch on this machine, by " +
                      diagnosis.event_cost->tool +
                      ": compare short kernels by their times in a row (amortized), or take that off isolated ones"};
}

std::string event_cost_line(const EventCost& cost) {
  std::string text;
  for (const EventCost::Kernel& kernel : cost.kernels) {
    if (!text.empty()) text += ", ";
    text += (kernel.told_ns == 0 ? "empty kernel " : "spin of " + shown_time(kernel.told_ns) + " ") +
            shown_time(kernel.isolated_ns) + " (" + cost.tool + ": " + shown_time(kernel.profiler_ns) + ")";
  }
  return text;
}

Json event_cost_json(const EventCost& cost) {
  Json kernels = Json::array();
  for (const EventCost::Kernel& kernel : cost.kernels)
    kernels.push_back({{"told_ns", kernel.told_ns},
                       {"isolated_ns", kernel.isolated_ns},
                       {"profiler_ns", kernel.profiler_ns},
                       {"added_ns", kernel.added_ns()}});
  return {{"tool", cost.tool},
          {"added_least_ns", cost.least_ns()},
          {"added_most_ns", cost.most_ns()},
          {"kernels", std::move(kernels)}};
}

}  // namespace inferometer
