// How a block of threads cuts a product Y = X W^T: the compile-time parameters of mma_matmul_kernel.
#pragma once

#include <cstddef>

#include "harness/operator/dtype.hpp"

namespace inferometer {

inline constexpr int kTileK = 64;      // 16-bit elements of one row in a stage: 128 bytes, every bank once
inline constexpr int kPanelN = 64;     // columns of Y in a panel of a W stored [k, n]: its rows are 128 bytes too
inline constexpr int kChunkElems = 8;  // 16 bytes: one cp.async, one row of an ldmatrix tile
inline constexpr int kMmaM = 16;       // of mma m16n8k16
inline constexpr int kMmaN = 8;
inline constexpr int kMmaK = 16;
inline constexpr int kWarpThreads = 32;

// A block computes a [tile_m, tile_n] tile of Y with warps_m x warps_n warps.
struct TileShape {
  int tile_m;
  int tile_n;
  int warps_m;
  int warps_n;
  int stages;         // slices of kTileK in use or on their way
  int blocks_per_sm;  // that registers and shared memory are held to

  // W is stored [k, n]: a stage holds it in panels [kTileK of k, 64 columns of Y] and ldmatrix transposes them. They
  // take the bytes of as many rows [64, kTileK].
  bool w_is_kn = false;

  // Rows of tiles in a band (work_split.cuh): 2048 rows of Y, about the side of the square that 132 tiles of 128 x 256
  // cover.
  constexpr int band() const { return 2048 / tile_m; }
  constexpr int threads() const { return warps_m * warps_n * kWarpThreads; }
  constexpr int warp_m() const { return tile_m / warps_m; }
  constexpr int warp_n() const { return tile_n / warps_n; }
  constexpr int stage_bytes() const { return (tile_m + tile_n) * kTileK * 2; }
  // Row stride of Y's tile in shared memory: 16 bytes of padding put eight rows on different banks.
  constexpr int staged_row_bytes() const { return tile_n * 2 + 16; }
  constexpr std::size_t smem_bytes() const {
    const int pipeline = stages * stage_bytes();
    const int epilogue = tile_m * staged_row_bytes();
    return static_cast<std::size_t>(pipeline > epilogue ? pipeline : epilogue);
  }
};

// Byte offset of 16-byte chunk `chunk` of row `row` within a stage. Eight consecutive rows at one chunk, what an
// ldmatrix tile reads, lie in eight different groups of four banks; so do the eight chunks of a row, what cp.async
// writes. Flipping bits of `chunk` flips the same bits of offset / 16, so k advances by one XOR.
INFEROMETER_HOST_DEVICE constexpr int stage_offset(int row, int chunk) {
  return row * kTileK * 2 + (chunk ^ row % 8) * 16;
}

}  // namespace inferometer
