#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>

#include "harness/measure/gpu_info.hpp"
#include "harness/operator/cuda_check.cuh"

namespace inferometer {
namespace {

std::string cuda_version(int number) {  // 13000 is 13.0
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid) {  // as nvidia-smi -L writes it
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex.data();
  }
  return text;
}

int attribute(cudaDeviceAttr name, int ordinal) {
  int value = 0;
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&value, name, ordinal));
  return value;
}

}  // namespace

std::string pci_bus_id(int ordinal) {
  std::array<char, 32> text{};
  INFEROMETER_CUDA_CHECK(cudaDeviceGetPCIBusId(text.data(), text.size(), ordinal));
  return text.data();
}

GpuInfo read_gpu_info(int ordinal, const Nvml& nvml) {
  cudaDeviceProp properties{};
  INFEROMETER_CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal));
  int driver_cuda = 0;
  int runtime = 0;
  INFEROMETER_CUDA_CHECK(cudaDriverGetVersion(&driver_cuda));
  INFEROMETER_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  GpuInfo info;
  info.name = properties.name;
  info.sm = 10 * properties.major + properties.minor;
  info.sm_count = properties.multiProcessorCount;
  info.memory_bytes = properties.totalGlobalMem;
  info.l2_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  info.driver = nvml.driver_version().value_or("for CUDA " + cuda_version(driver_cuda));
  info.cuda_runtime = cuda_version(runtime);
  info.max_sm_mhz = nvml.max_sm_mhz().value_or(attribute(cudaDevAttrClockRate, ordinal) / 1000);  // kHz
  info.power_limit_w = nvml.power_limit_w().value_or(0);
  info.uuid = uuid_text(properties.uuid);
  return info;
}

}  // namespace inferometer
