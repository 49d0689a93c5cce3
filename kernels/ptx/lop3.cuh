// Any function of three bits, bitwise on three registers (PTX lop3.b32).
#pragma once

#include <cstdint>

namespace inferometer {

// PTX lop3.b32 with the table of (a & b) ^ c. By itself the compiler spends two instructions when b and c are
// constants.
__device__ __forceinline__ std::uint32_t and_xor(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;\n" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// PTX lop3.b32 with the table of (a & b) | c.
__device__ __forceinline__ std::uint32_t and_or(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;\n" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

}  // namespace inferometer
