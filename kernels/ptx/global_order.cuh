// Order between blocks of a running kernel through global memory (PTX, sm_70; the fence of proxies sm_90).
//
// Who stores for others, meets (a barrier), and lets one thread count with count_release; who reads asks with
// load_acquire until the count is there, and meets too. Where the copy engine reads what ordinary stores wrote, both
// sides also call fence_async_global, between the stores or the question and what follows.
#pragma once

#include <cstdint>

namespace inferometer {

// PTX ld.acquire.gpu.global.u32.
__device__ __forceinline__ std::uint32_t load_acquire_4b(const void* src) {
  std::uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];\n" : "=r"(value) : "l"(src) : "memory");
  return value;
}

// PTX red.release.gpu.global.add.u32 of 1.
__device__ __forceinline__ void count_release(void* counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;\n" ::"l"(counter) : "memory");
}

// PTX st.relaxed.gpu.global.v4.f32: as store_relaxed_4b of four words, 16-byte aligned.
__device__ __forceinline__ void store_relaxed_16b(void* dst, float4 v) {
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"l"(dst), "f"(v.x), "f"(v.y), "f"(v.z),
               "f"(v.w)
               : "memory");
}

#if __CUDA_ARCH__ >= 900

// PTX fence.proxy.async.global.
__device__ __forceinline__ void fence_async_global() { asm volatile("fence.proxy.async.global;\n" ::: "memory"); }

#endif

}  // namespace inferometer
