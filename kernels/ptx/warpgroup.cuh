// What warps and warpgroups of a block do to share registers and take turns (PTX, sm_90a and sm_80).
#pragma once

#include <cstdint>

namespace inferometer {

// PTX barrier.cta.sync / bar.sync (sm_80): named barrier `id` (1 .. 15; 0 is __syncthreads) of `threads` threads, a
// multiple of 32. Waits for the other arrivals and orders memory among them.
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

// PTX bar.arrive (sm_80): arrives without waiting.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// PTX setmaxnreg.inc.sync.aligned.u32 (sm_90a): the warpgroup's threads get kRegisters each, a multiple of 8, once
// others have given them up.
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}

// PTX setmaxnreg.dec.sync.aligned.u32 (sm_90a): keeps kRegisters a thread and gives up the rest.
template <int kRegisters>
__device__ __forceinline__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}

#endif

}  // namespace inferometer
