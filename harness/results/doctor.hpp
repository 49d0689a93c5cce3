// What `doctor` finds: the state of the machine, how well the harness measures on it, and what to do about either.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/event_cost.hpp"
#include "harness/measure/gpu_state.hpp"
#include "harness/measure/host_state.hpp"
#include "harness/results/environment.hpp"
#include "harness/results/examination.hpp"
#include "harness/results/json.hpp"

namespace inferometer {

struct Diagnosis {
  HostInfo host;
  HostState host_state;
  int threads_used = 1;
  Examination cpu;
  std::optional<GpuInfo> gpu;
  std::string gpu_absent;                      // why there is none
  std::optional<GpuState> gpu_at_rest;         // before anything was measured
  std::optional<GpuState> gpu_after_ceilings;  // right after matrix products, which draw the most power
  std::optional<Examination> gpu_measured;
  std::optional<EventCost> event_cost;
  std::string event_cost_absent;  // why it was not measured
};

enum class Severity : std::uint8_t {
  good,
  advice,  // figures stand, and would stand better
  fault,   // figures measured here do not mean what they say, or nothing
};

struct Finding {
  Severity severity = Severity::good;
  std::string topic;        // "GPU cache clear"
  std::string sentence;     // what was found, and what to do
  std::string device = {};  // of a run, which may have several GPUs: "cpu" or a uuid
};

std::vector<Finding> findings(const Diagnosis& diagnosis);
std::vector<Finding> findings(const DeviceReport& report);  // of what a run measured

// 1 with a fault among them, else 0.
int exit_code(const std::vector<Finding>& findings);

std::string_view severity_name(Severity severity);

Json findings_json(const std::vector<Finding>& findings);

// {"schema": "inferometer.doctor/1", "program": ..., "host": ..., "gpu": ..., "findings": [...]}
Json diagnosis_json(const Diagnosis& diagnosis, const std::vector<Finding>& findings);

}  // namespace inferometer
