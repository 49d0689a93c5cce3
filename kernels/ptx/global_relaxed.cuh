// Loads and stores of global memory that other blocks of a running kernel store and load (PTX, sm_70). They go to the
// L2, and a word is as it was before or as it was after a store.
#pragma once

#include <cstdint>

namespace inferometer {

// PTX ld.relaxed.gpu.global.v4.u32. `src` is 16-byte aligned; each word for itself.
__device__ __forceinline__ uint4 load_relaxed_16b(const void* src) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(src)
               : "memory");
  return v;
}

// PTX st.relaxed.gpu.global.u16.
__device__ __forceinline__ void store_relaxed_2b(void* dst, std::uint16_t value) {
  asm volatile("st.relaxed.gpu.global.u16 [%0], %1;\n" ::"l"(dst), "h"(value) : "memory");
}

// PTX st.relaxed.gpu.global.u32.
__device__ __forceinline__ void store_relaxed_4b(void* dst, std::uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;\n" ::"l"(dst), "r"(value) : "memory");
}

}  // namespace inferometer
