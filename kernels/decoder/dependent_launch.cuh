// Launches a kernel that may begin early, by the rules of kernels/common/launch_attributes.hpp. Chips before sm_90
// launch it as any other.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/common/launch_attributes.hpp"

namespace inferometer::decoder {

inline bool has_dependent_launches() {
  int device = 0;
  int major = 0;
  INFEROMETER_CUDA_CHECK(cudaGetDevice(&device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return major >= 9;
}

template <class... Parameters, class... Arguments>
void launch_dependent(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, Stream stream,
                      Arguments&&... arguments) {
  static const bool kDependent = has_dependent_launches();
  // The split of an SM's memory that products and attention ask for: with another one no block would join theirs there.
  INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                              cudaFuncAttributePreferredSharedMemoryCarveout,
                                              cudaSharedmemCarveoutMaxShared));
  LaunchAttributes attributes;
  attributes.add_early(kDependent);
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  attributes.give_to(config);
  INFEROMETER_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Arguments>(arguments))...));
}

}  // namespace inferometer::decoder
