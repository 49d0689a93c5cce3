#include "harness/measure/device.hpp"

#include "harness/operator/no_cuda.hpp"

namespace inferometer {

OutOfMemory::OutOfMemory(const std::string& where, std::size_t asked_bytes, std::size_t free_bytes)
    : std::runtime_error(where + ": out of memory: asked for " + std::to_string(asked_bytes) + " bytes, " +
                         std::to_string(free_bytes) + " bytes free"),
      asked_bytes_(asked_bytes),
      free_bytes_(free_bytes) {}

#ifndef INFEROMETER_WITH_CUDA
std::unique_ptr<Device> make_gpu_device(int /*ordinal*/, std::string& reason) {
  reason = no_cuda_reason();
  return nullptr;
}
#endif

}  // namespace inferometer
