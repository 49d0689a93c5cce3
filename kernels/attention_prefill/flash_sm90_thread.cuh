// attention_prefill / flash_sm90: which part of a math warpgroup's 64 rows a thread holds. As accumulators of wgmma are
// spread (ptx/wgmma.cuh): two rows, 8 apart, of the warp's 16.
#pragma once

#include <cstdint>

#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared_address.cuh"

namespace inferometer {

#if __CUDA_ARCH__ >= 900

// Little is kept between blocks of keys, and what can be is computed where needed: the loop needs the registers.
struct WarpgroupThread {
  static constexpr unsigned kWholeWarp = 0xffffffffU;

  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int warp() { return static_cast<int>(threadIdx.x % 128 / 32); }
  // The first row of the 64; the second is 8 further.
  __device__ static int row() { return warp() * 16 + lane() / 4; }

  // Says to the compiler that all lanes have this value, so that what follows from it is computed once a warp.
  template <class Int>
  __device__ static Int uniform(Int value) {
    return __shfl_sync(kWholeWarp, value, 0);
  }

  // One arrival a warp.
  __device__ static void arrive(std::uint64_t* barrier) {
    __syncwarp();
    if (lane() == 0) mbarrier_arrive(shared_address(barrier));
  }
};

#endif

}  // namespace inferometer
