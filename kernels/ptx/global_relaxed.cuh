// Loads and stores of global memory that other blocks of a running kernel store and load (PTX, sm_70). They go to the
// L2, and what one store writes is seen whole or not at all, in no order among stores.
//
// decoder/product_chain_exchange.cuh reads with 16 bytes what was written by 4 and by 2. PTX takes a vector for
// accesses of its elements, so words that were stored as words overlap completely, and its memory model holds for them.
// A load of a word half of which is stored meanwhile is a mixed-size race, of which the model says nothing. That one
// rests on the hardware: aligned accesses do not straddle a sector of 32 bytes, and the L2 writes and reads a sector's
// bytes at once. The reader needs no more: it asks of each element whether it is there, and of no two which came first.
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
