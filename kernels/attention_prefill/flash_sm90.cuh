// attention_prefill / flash_sm90, the kernel: FlashAttention forward with wgmma, the copy engine and warps that
// specialise.
//
// As many thread blocks as SMs; each takes tiles of queries until none is left. Its last warpgroup finds tiles and
// starts copies, the others compute. After: Shah et al., "FlashAttention-3: Fast and Accurate Attention with Asynchrony
// and Low-precision", 2024.
#pragma once

#include "kernels/attention_prefill/flash_sm90_config.hpp"
#include "kernels/attention_prefill/flash_sm90_copy.cuh"
#include "kernels/attention_prefill/flash_sm90_math.cuh"
#include "kernels/attention_prefill/flash_sm90_params.hpp"
#include "kernels/attention_prefill/flash_sm90_shared.cuh"

namespace inferometer {

template <class T, class Shape, bool kSoftCap>
__global__ void __launch_bounds__(Shape::kThreads, 1) flash_sm90_kernel(const __grid_constant__ FlashSm90Params p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char dynamic[];
  auto* shared = reinterpret_cast<FlashSm90Shared<Shape>*>(dynamic);
  // One thread for both teams: with one each, the compiler loops over the two at every barrier, and compute-sanitizer
  // takes the two barriers for one.
  if (threadIdx.x == 0) {
#pragma unroll
    for (int team = 0; team < Shape::kTeams; ++team) shared[team].init_barriers();
  }
  __syncthreads();

  // From one lane, so that the compiler knows it to be the same in all: descriptors stay in uniform registers.
  const int warpgroup = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 128, 0);
  if (warpgroup == Shape::kWarpgroups * Shape::kTeams) {
    keep_registers<Shape::kCopyRegisters>();
    const int warp = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) % 128 / 32, 0);
    const int team = warp / 2;
    if constexpr (Shape::kTeams == 1) {
      if (warp == 2) find_tiles(p, shared[0]);
    }
    if (team >= Shape::kTeams) return;
    if (warp % 2 == 0) QueryKeyWarp<Shape>(p, shared[team], team).run();
    if (warp % 2 == 1) ValueWarp<Shape>(p, shared[team]).run();
  } else {
    take_registers<Shape::kMathRegisters>();
    const int team = warpgroup / Shape::kWarpgroups;
    MathWarpgroup<T, Shape, kSoftCap>(p, shared[team], warpgroup % Shape::kWarpgroups, team).run();
  }
#endif
}

}  // namespace inferometer
