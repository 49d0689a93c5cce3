// What a launch plan must know of the GPU it is for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace inferometer {

struct GpuLimits {
  int sm_count = 0;
  std::size_t block_smem_bytes = 0;  // the most shared memory that one block can have
  std::int64_t l2_bytes = 0;
  bool clusters = false;  // runs thread block clusters: compute capability 9.0 and later
};

// Of the current device. Throws CudaError.
GpuLimits current_gpu_limits();

}  // namespace inferometer
