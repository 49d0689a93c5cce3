// Tiles in shared memory as wgmma and the copy engine share them: panels of rows of 128 bytes, each row's eight 16-byte
// chunks exchanged by the row's number modulo 8 (the 128-byte swizzle). A tile [rows, columns] of 16-bit elements is
// columns / 64 panels [rows, 64], one after the other; each starts at a multiple of 1024 bytes.
//
// Source: PTX ISA, "Asynchronous warpgroup level matrix shared memory layout".
#pragma once

#include <cstdint>

namespace inferometer {

inline constexpr int kPanelBytes = 128;  // of one row of a panel

// Descriptor fields that do not depend on the address: 128-byte swizzle, strides in units of 16 bytes.
__host__ __device__ constexpr std::uint64_t swizzled_descriptor(std::uint32_t leading_bytes,
                                                                std::uint32_t stride_bytes) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  return kSwizzle128 | std::uint64_t{leading_bytes >> 4} << 16 | std::uint64_t{stride_bytes >> 4} << 32;
}

// A, or a k_major B: rows of a panel are M (or N), its 128 bytes are k. `address` is a shared address of a row that is
// a multiple of 8, plus 32 bytes for each step of k within the panel. Groups of 8 rows are 1024 bytes apart.
__host__ __device__ constexpr std::uint64_t k_major_descriptor(std::uint32_t address) {
  return swizzled_descriptor(16, 1024) | (address & 0x3FFFFU) >> 4;
}

// An n_major B: rows of panels are k, `address` that of a row which is a multiple of 8; its columns are N, 64 a panel,
// panels `panel_stride` bytes apart.
__host__ __device__ constexpr std::uint64_t n_major_descriptor(std::uint32_t address, std::uint32_t panel_stride) {
  return swizzled_descriptor(panel_stride, 1024) | (address & 0x3FFFFU) >> 4;
}

// The same matrix further on by `bytes`, a multiple of 16 within the same window of 256 KB: one addition to the lower
// word, cheaper than a descriptor made anew.
__host__ __device__ constexpr std::uint64_t advance_descriptor(std::uint64_t descriptor, std::uint32_t bytes) {
  const std::uint32_t low = static_cast<std::uint32_t>(descriptor) + (bytes >> 4);
  return (descriptor >> 32 << 32) | low;
}

}  // namespace inferometer
