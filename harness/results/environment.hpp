// What a run was measured on: the machine, its devices, their ceilings and the noise of the clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_state.hpp"
#include "harness/measure/host_state.hpp"

namespace inferometer {

// What the machine was doing before anything was opened or measured.
struct MachineState {
  HostState host;
  std::optional<GpuState> gpu;  // where the sweep has GPU rows and the driver tells
};

// Learned by the process that opens the devices, once per run.
struct DeviceReport {
  std::optional<GpuInfo> gpu;
  std::string gpu_absent;  // why there is none, or why none was opened
  Ceilings gpu_ceilings;
  Ceilings cpu_ceilings;
  Noise noise;  // of the GPU where the sweep has GPU rows and there is one, else of the CPU
  int threads_used = 1;
  MachineState at_start;
};

struct HostInfo {
  std::string cpu_model;
  int logical_cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::string os;  // distribution and kernel
};

HostInfo read_host_info();

std::string utc_now();  // "2026-11-29T14:00:00Z"

}  // namespace inferometer
