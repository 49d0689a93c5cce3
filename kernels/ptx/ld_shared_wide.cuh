// Loads of 16 and 8 bytes, and of 16 and 8 bits, from shared memory by its 32-bit address (PTX ld.shared).
#pragma once

#include <cstdint>

namespace inferometer {

// PTX ld.shared.v4.u32. `src` is 16-byte aligned.
__device__ __forceinline__ uint4 load_shared_16b(std::uint32_t src) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(src));
  return v;
}

// PTX ld.shared.v2.f32. `src` is 8-byte aligned.
__device__ __forceinline__ float2 load_shared_two_floats(std::uint32_t src) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n" : "=f"(v.x), "=f"(v.y) : "r"(src));
  return v;
}

// PTX ld.shared.u16. `src` is 2-byte aligned.
__device__ __forceinline__ std::uint16_t load_shared_2b(std::uint32_t src) {
  std::uint16_t bits;
  asm volatile("ld.shared.u16 %0, [%1];\n" : "=h"(bits) : "r"(src));
  return bits;
}

// PTX ld.shared.u8.
__device__ __forceinline__ std::uint32_t load_shared_1b(std::uint32_t src) {
  std::uint32_t bits;
  asm volatile("ld.shared.u8 %0, [%1];\n" : "=r"(bits) : "r"(src));
  return bits;
}

}  // namespace inferometer
