#include "harness/measure/gpu_state.hpp"

#include <cuda_runtime_api.h>

#include "harness/measure/gpu_info.hpp"
#include "harness/measure/nvml.hpp"

namespace inferometer {

std::optional<GpuState> read_gpu_state(int ordinal) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // make_gpu_device says what is wrong
    return std::nullopt;
  }
  if (ordinal < 0 || ordinal >= count) return std::nullopt;
  return Nvml(pci_bus_id(ordinal)).state();
}

}  // namespace inferometer
