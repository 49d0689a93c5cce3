// What only the driver's management library knows: clocks, power limit, why clocks are held back. It is opened at run
// time, since it comes with the driver and not with the toolkit; without it these figures are absent. CUDA builds only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/gpu_state.hpp"

namespace inferometer {

class Nvml {
 public:
  // The GPU at a PCI bus id as cudaDeviceGetPCIBusId writes it.
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::optional<std::string> driver_version() const;
  std::optional<int> max_sm_mhz() const;
  std::optional<double> power_limit_w() const;

  // Flags of a timing for each reason that holds the SM clock back right now: "power_limited", "thermally_limited",
  // "slowed_by_hardware".
  std::vector<std::string> clock_limits() const;

  std::optional<GpuState> state() const;  // none without the library

 private:
  struct Library;
  std::unique_ptr<Library> library_;  // nullptr: absent, or it does not know this GPU
};

}  // namespace inferometer
