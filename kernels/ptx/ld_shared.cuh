// Loads from shared memory by its 32-bit address (PTX ld.shared): bits by their bytes, floats by their number.
#pragma once

#include <cstdint>

namespace inferometer {

// PTX ld.shared.u8.
__device__ __forceinline__ std::uint32_t load_shared_1b(std::uint32_t src) {
  std::uint32_t bits;
  asm volatile("ld.shared.u8 %0, [%1];\n" : "=r"(bits) : "r"(src) : "memory");
  return bits;
}

// PTX ld.shared.u16. `src` is 2-byte aligned.
__device__ __forceinline__ std::uint16_t load_shared_2b(std::uint32_t src) {
  std::uint16_t bits;
  asm volatile("ld.shared.u16 %0, [%1];\n" : "=h"(bits) : "r"(src) : "memory");
  return bits;
}

// PTX ld.shared.u32. `src` is 4-byte aligned.
__device__ __forceinline__ std::uint32_t load_shared_4b(std::uint32_t src) {
  std::uint32_t bits;
  asm volatile("ld.shared.u32 %0, [%1];\n" : "=r"(bits) : "r"(src) : "memory");
  return bits;
}

// PTX ld.shared.v4.u32. `src` is 16-byte aligned.
__device__ __forceinline__ uint4 load_shared_16b(std::uint32_t src) {
  uint4 bits;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
               : "r"(src)
               : "memory");
  return bits;
}

// PTX ld.shared.v2.f32. `src` is 8-byte aligned.
__device__ __forceinline__ float2 load_shared_two_floats(std::uint32_t src) {
  float2 value;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n" : "=f"(value.x), "=f"(value.y) : "r"(src) : "memory");
  return value;
}

// PTX ld.shared.v4.f32. `src` is 16-byte aligned.
__device__ __forceinline__ float4 load_shared_four_floats(std::uint32_t src) {
  float4 value;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];\n"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(src)
               : "memory");
  return value;
}

}  // namespace inferometer
