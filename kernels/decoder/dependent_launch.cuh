// Launches a kernel so that its blocks may be set up while the kernel in front of it ends (programmatic stream
// serialization); the kernel begins with griddepcontrol_wait(). Saves about a microsecond a kernel, a fifth of what a
// layer's small kernels take. Chips before sm_90 launch it as any other.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"

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
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = kDependent ? 1 : 0;
  INFEROMETER_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Arguments>(arguments))...));
}

}  // namespace inferometer::decoder
