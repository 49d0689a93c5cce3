// Transposes an 8x8 tile of 16-bit elements held by a warp (PTX movmatrix, sm_75).
#pragma once

#include <cstdint>

namespace inferometer {

// PTX movmatrix.trans.b16 (sm_75). Lane l gives elements (row l / 4, columns 2 (l % 4) and + 1), the lower column in
// the lower half, and gets the same elements of the transposed tile: the accumulator layout of mma becomes its B
// operand.
__device__ __forceinline__ std::uint32_t movmatrix_trans(std::uint32_t tile) {
  std::uint32_t transposed;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(transposed) : "r"(tile));
  return transposed;
}

}  // namespace inferometer
