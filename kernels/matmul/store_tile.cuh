// From the f32 sums in registers to rows of Y.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/mma_mainloop.cuh"

namespace inferometer {

// Rounds the block's sums to T and stores them at y, the tile's first element. They go through shared memory, free on
// entry, to leave in whole rows: 16-byte stores where rows of Y are 16-byte aligned.
template <class T, class Tile>
__device__ __forceinline__ void store_tile(const WarpSums<Tile>& sums, std::byte* staged, T* y, std::int64_t row_stride,
                                           int rows, int columns) {
  using Warp = WarpTiles<Tile>;
  constexpr TileShape kTile = Tile::kShape;
  constexpr int kStagedRow = kTile.staged_row_bytes();
  const Warp warp;
  const int lane = threadIdx.x % kWarpThreads;
#pragma unroll
  for (int i = 0; i < Warp::kRows; ++i)
#pragma unroll
    for (int j = 0; j < Warp::kColumns; ++j) {
      const int row = warp.row + i * kMmaM + lane / 4;
      const int column = warp.column + j * kMmaN + lane % 4 * 2;
      std::byte* const at = staged + row * kStagedRow + column * 2;
      *reinterpret_cast<std::uint32_t*>(at) = pack_pair<T>(sums[i][j][0], sums[i][j][1]);
      *reinterpret_cast<std::uint32_t*>(at + 8 * kStagedRow) = pack_pair<T>(sums[i][j][2], sums[i][j][3]);
    }
  __syncthreads();

  if (row_stride % kChunkElems == 0) {
    constexpr int kRowChunks = kTile.tile_n / kChunkElems;
    for (int c = threadIdx.x; c < kTile.tile_m * kRowChunks; c += kTile.threads()) {
      const int row = c / kRowChunks;
      const int column = c % kRowChunks * kChunkElems;
      if (row < rows && column < columns)
        *reinterpret_cast<uint4*>(y + row * row_stride + column) =
            *reinterpret_cast<const uint4*>(staged + row * kStagedRow + column * 2);
    }
  } else {
    for (int e = threadIdx.x; e < kTile.tile_m * kTile.tile_n; e += kTile.threads()) {
      const int row = e / kTile.tile_n;
      const int column = e % kTile.tile_n;
      if (row < rows && column < columns)
        y[row * row_stride + column] = *reinterpret_cast<const T*>(staged + row * kStagedRow + column * 2);
    }
  }
}

}  // namespace inferometer
