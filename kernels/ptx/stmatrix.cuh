// Stores of 8x8 tiles of 16-bit elements from a warp's registers to shared memory (PTX stmatrix, sm_90): the inverse of
// ldmatrix.
#pragma once

#include <cstdint>

namespace inferometer {

#if __CUDA_ARCH__ >= 900

// PTX stmatrix.sync.aligned.m8n8.x2.shared.b16. Lanes 0-7 give the shared addresses of the first tile's rows, lanes
// 8-15 those of the second's, 16-byte aligned. Lane l's packed pair is row l / 4, columns 2 (l % 4) and one more. The
// whole warp calls; visible to others after the barrier that follows.
__device__ __forceinline__ void stmatrix_x2(std::uint32_t row, std::uint32_t first, std::uint32_t second) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};\n" ::"r"(row), "r"(first), "r"(second)
               : "memory");
}

// PTX stmatrix.sync.aligned.m8n8.x1.trans.shared.b16: one tile, lanes 0-7 give its rows. Lane l's pair is column l / 4,
// rows 2 (l % 4) and one more.
__device__ __forceinline__ void stmatrix_x1_trans(std::uint32_t row, std::uint32_t tile) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};\n" ::"r"(row), "r"(tile) : "memory");
}

// Two tiles, as stmatrix_x2, with .trans: lane l's pair is column l / 4, rows 2 (l % 4) and one more.
__device__ __forceinline__ void stmatrix_x2_trans(std::uint32_t row, std::uint32_t first, std::uint32_t second) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};\n" ::"r"(row), "r"(first), "r"(second)
               : "memory");
}

#endif

}  // namespace inferometer
