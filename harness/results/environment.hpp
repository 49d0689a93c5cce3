// What a run was measured on: the machine, its devices, their ceilings and the noise of the clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_state.hpp"
#include "harness/measure/host_state.hpp"
#include "harness/results/examination.hpp"

namespace inferometer {

// What the machine was doing before anything was opened or measured.
struct MachineState {
  HostState host;
  std::optional<GpuState> gpu;  // where the sweep has GPU rows and the driver tells
};

// Whether cold measurements are cold on a device.
struct CheckedCache {
  std::optional<CacheCheck> check;
  std::string absent;  // why it was not checked
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
  std::optional<GpuState> gpu_after_ceilings;  // right after matrix products, which draw the most power
  std::optional<Noise> cpu_noise;              // where the processors were measured
  CheckedCache cpu_cache;
  CheckedCache gpu_cache;
};

struct ExaminedDevice {
  std::string device;  // as the rows name it: "cpu", or the uuid of a GPU
  bool is_gpu = false;
  Examination measured;
};

// Those that the run measured: the processors where rows ran on them, the GPU where there is one.
std::vector<ExaminedDevice> examined_devices(const DeviceReport& report);

struct HostInfo {
  std::string cpu_model;
  int logical_cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::string os;  // distribution and kernel
};

HostInfo read_host_info();

std::string utc_now();  // "2026-11-29T14:00:00Z"

}  // namespace inferometer
