// What a GPU is doing right now: clocks, power, heat, and who else uses it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace inferometer {

// What the driver does not tell is absent.
struct GpuState {
  std::optional<bool> persistence;  // the driver stays loaded between programs
  std::optional<int> sm_mhz;        // now
  std::optional<int> memory_mhz;    // now
  std::optional<int> temperature_c;
  std::optional<double> power_w;
  std::optional<int> other_processes;     // that compute on it, this one left out
  std::vector<std::string> clock_limits;  // as Nvml::clock_limits
};

// Opens nothing on the GPU, so that this program is not among its processes. None without the driver's management
// library, or in a build without CUDA.
std::optional<GpuState> read_gpu_state(int ordinal);

}  // namespace inferometer
