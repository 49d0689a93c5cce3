// Copies of contiguous bytes by the copy engine (PTX cp.async.bulk, sm_90).
#pragma once

#include <cstdint>

namespace inferometer {

#if __CUDA_ARCH__ >= 900

// PTX cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes: `bytes` from global memory to this block. Both
// addresses are 16-byte aligned and `bytes` a multiple of 16; `dst` and `barrier` are shared addresses. The bytes are
// visible to whoever waited for the phase of `barrier` that counts them.
__device__ __forceinline__ void bulk_load(std::uint32_t dst, const void* src, std::uint32_t bytes,
                                          std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(barrier)
               : "memory");
}

// The same with a policy for the L2 (ptx/cache_policy.cuh): .L2::cache_hint.
__device__ __forceinline__ void bulk_load(std::uint32_t dst, const void* src, std::uint32_t bytes,
                                          std::uint32_t barrier, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;\n" ::
          "r"(dst),
      "l"(src), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
}

#endif

}  // namespace inferometer
