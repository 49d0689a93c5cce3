#include "harness/measure/gpu_handles.hpp"

#include <algorithm>

#include "harness/measure/device.hpp"

namespace inferometer {

CudaEvent make_event() {
  cudaEvent_t event = nullptr;
  INFEROMETER_CUDA_CHECK(cudaEventCreate(&event));
  return CudaEvent(event);
}

CudaMemory make_device_memory(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // the refusal is answered here; the next launch's check must not find it
    throw OutOfMemory("GPU memory", bytes, free_device_bytes());
  }
  check_cuda(code, "cudaMalloc", __FILE__, __LINE__);
  return CudaMemory(memory);
}

std::size_t free_device_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  INFEROMETER_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

double elapsed_ns(const CudaEvent& start, const CudaEvent& stop) {
  float milliseconds = 0;
  INFEROMETER_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start.get(), stop.get()));
  return 1e6 * static_cast<double>(milliseconds);
}

}  // namespace inferometer
