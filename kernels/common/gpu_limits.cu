#include "kernels/common/gpu_limits.hpp"

#include "harness/operator/cuda_check.cuh"

namespace inferometer {

GpuLimits current_gpu_limits() {
  int device = 0;
  int sm_count = 0;
  int block_smem_bytes = 0;
  int l2_bytes = 0;
  int clusters = 0;
  INFEROMETER_CUDA_CHECK(cudaGetDevice(&device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&block_smem_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, device));
  return {.sm_count = sm_count,
          .block_smem_bytes = static_cast<std::size_t>(block_smem_bytes),
          .l2_bytes = l2_bytes,
          .clusters = clusters != 0};
}

}  // namespace inferometer
