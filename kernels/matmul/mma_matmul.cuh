// Y = X W^T on tensor cores with mma.sync: the kernel of cuda.f16_sm80.
//
//   in   x  [m, k]   w  [n, k]     f16 or bf16; k a multiple of 8, so that rows are 16-byte aligned
//                    w  [k, n]     of tiles that are w_is_kn; n a multiple of 8
//   out  y  [m, n]                 accumulated in f32, rounded once
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matmul/mma_args.hpp"
#include "kernels/matmul/mma_mainloop.cuh"
#include "kernels/matmul/shared_tile.cuh"
#include "kernels/matmul/store_tile.cuh"
#include "kernels/matmul/tile_shape.cuh"
#include "kernels/matmul/work_split.cuh"
#include "kernels/ptx/shared_address.cuh"

namespace inferometer {

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::kShape.threads(), Tile::kShape.blocks_per_sm)
    mma_matmul_kernel(const MmaMatmulArgs<T> args) {
  constexpr TileShape kTile = Tile::kShape;
  // Aligned although static shared memory comes first: a line of X or W must land in one 128-byte line, or cp.async.cg
  // asks for it twice (results/notes/decode.md).
  extern __shared__ __align__(128) unsigned char smem[];

  const WorkSplit& split = args.split;
  const BlockWork work = split.work_of(blockIdx.x, kTile.band());
  const std::int64_t m0 = work.m * kTile.tile_m;
  const int rows = static_cast<int>(min(args.m - m0, std::int64_t{kTile.tile_m}));
  for (std::int64_t at = work.first; at < work.last;) {
    const std::int64_t n = at / split.slices_per_tile;
    const int first = static_cast<int>(at % split.slices_per_tile);
    const int slices = static_cast<int>(min(split.slices_per_tile - first, work.last - at));
    const std::int64_t n0 = n * kTile.tile_n;
    const int columns = static_cast<int>(min(args.n - n0, std::int64_t{kTile.tile_n}));
    const int k0 = first * kTileK;

    WarpSums<Tile> sums = {};
    accumulate_slices<T, Tile>({.x = args.x + m0 * args.k + k0,
                                .w = args.w + (kTile.w_is_kn ? k0 * args.n + n0 : n0 * args.k + k0),
                                .row_stride = args.k,
                                .n = args.n,
                                .rows = rows,
                                .columns = columns,
                                .k_left = static_cast<int>(args.k) - k0},
                               slices, shared_address(smem), sums);
    __syncthreads();  // before shared memory is used anew: other warps may still read their last fragments
    if (slices == split.slices_per_tile || merge_shared_tile<Tile>(args.shared, split, work.m, n, sums)) {
      store_tile<T, Tile>(sums, reinterpret_cast<std::byte*>(smem), args.y + m0 * args.n + n0, args.n, rows, columns);
      __syncthreads();  // the next tile's copies overwrite what is being stored
    }
    at += slices;
  }
}

}  // namespace inferometer
