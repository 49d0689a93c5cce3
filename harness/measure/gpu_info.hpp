// What a GPU says of itself. CUDA builds only.
#pragma once

#include <string>

#include "harness/measure/device.hpp"
#include "harness/measure/nvml.hpp"

namespace inferometer {

std::string pci_bus_id(int ordinal);
GpuInfo read_gpu_info(int ordinal, const Nvml& nvml);

}  // namespace inferometer
