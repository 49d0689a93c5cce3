// Loads of 8x8 tiles of 16-bit elements from shared memory into the fragments that mma takes (PTX ldmatrix, sm_75).
#pragma once

#include <cstdint>

namespace inferometer {

// PTX ldmatrix.x4.b16 (sm_75). Lane l gives the shared address of row l % 8 of tile l / 8: 16 bytes, 16-byte aligned.
// r[i] of lane l holds elements (row l / 4, columns 2 (l % 4) and + 1) of tile i, the lower column in the lower half.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

// PTX ldmatrix.x4.trans.b16 (sm_75). The same, each tile transposed: r[i] of lane l holds elements (rows 2 (l % 4) and
// + 1, column l / 4) of tile i, the upper row in the lower half.
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t (&r)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

}  // namespace inferometer
