#include "kernels/common/sm90_only.hpp"

#include <stdexcept>
#include <string>

#include "harness/operator/cuda_check.cuh"

namespace inferometer {

void require_sm90_code(const void* kernel, std::string_view name) {
  cudaFuncAttributes attributes{};
  INFEROMETER_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  if (attributes.binaryVersion != 90)
    throw std::runtime_error(std::string(name) + " is made for compute capability 9.0 and runs on no other");
}

bool on_sm90() {
  int device = 0;
  int major = 0;
  int minor = 0;
  INFEROMETER_CUDA_CHECK(cudaGetDevice(&device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return major == 9 && minor == 0;
}

}  // namespace inferometer
