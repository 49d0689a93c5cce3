// PTX cp.async.bulk.prefetch.L2.global (sm_90). Asks for `bytes`, a multiple of 16, of global memory from the 16-byte
// aligned `src` on to be brought into the L2; a hint, with nothing to wait for. On older chips it does nothing.
#pragma once

#include <cstdint>

namespace inferometer {

__device__ __forceinline__ void prefetch_l2(const void* src, std::uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;\n" ::"l"(__cvta_generic_to_global(src)), "r"(bytes)
               : "memory");
#endif
}

}  // namespace inferometer
