// Loads from shared memory by its 32-bit address (PTX ld.shared).
#pragma once

#include <cstdint>

namespace inferometer {

// PTX ld.shared.u32. `src` is 4-byte aligned.
__device__ __forceinline__ std::uint32_t load_shared_4b(std::uint32_t src) {
  std::uint32_t bits;
  asm volatile("ld.shared.u32 %0, [%1];\n" : "=r"(bits) : "r"(src) : "memory");
  return bits;
}

}  // namespace inferometer
