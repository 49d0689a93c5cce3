// The inner loop of mma_matmul_kernel: sums += X[rows, slices] W[columns, slices]^T for one tile of Y.
//
// Slices of kTileK go from global to shared memory by cp.async, `stages` deep, and from there by ldmatrix into
// fragments that are loaded ahead of the mma that takes them. W may be stored [k, n]. After: the multistage mainloop of
// CUTLASS 2 (Thakkar et al., github.com/NVIDIA/cutlass), its XOR-swizzled stages and its double-buffered fragments.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/matmul/stage_copies.cuh"
#include "kernels/matmul/tile_shape.cuh"
#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"

namespace inferometer {

// The mma tiles of Y that a warp sums up.
template <class Tile>
struct WarpTiles {
  static constexpr int kRows = Tile::kShape.warp_m() / kMmaM;
  static constexpr int kColumns = Tile::kShape.warp_n() / kMmaN;
  static_assert(kColumns % 2 == 0, "one ldmatrix_x4 of W feeds two mma tiles");

  int row;  // of the block's tile
  int column;

  __device__ WarpTiles() {
    const int warp = threadIdx.x / kWarpThreads;
    row = warp / Tile::kShape.warps_n * Tile::kShape.warp_m();
    column = warp % Tile::kShape.warps_n * Tile::kShape.warp_n();
  }
};

template <class Tile>
using WarpSums = float[WarpTiles<Tile>::kRows][WarpTiles<Tile>::kColumns][4];

// `slices` is at least 1. All threads of the block call; `stages` is the shared address of the block's stages, free on
// entry and, to this warp, on return.
template <class T, class Tile>
__device__ __forceinline__ void accumulate_slices(const TileOperands<T>& operands, int slices, std::uint32_t stages,
                                                  WarpSums<Tile>& sums) {
  using Copies = std::conditional_t<Tile::kShape.w_is_kn, KnStageCopies<T, Tile>, StageCopies<T, Tile>>;
  using Warp = WarpTiles<Tile>;
  constexpr TileShape kTile = Tile::kShape;
  constexpr int kStages = kTile.stages;
  constexpr int kPairs = Warp::kColumns / 2;
  constexpr int kSteps = kTileK / kMmaK;
  constexpr int kRowBytes = kTileK * 2;
  constexpr int kStepBytes = kMmaK * 2;

  // Lane l's row and chunk in ldmatrix_x4: X's tiles go down the rows first, W's along k first (see ptx/mma.cuh), which
  // is down the rows of a W stored [k, n]. A warp's columns lie in one panel of it, at a multiple of their number:
  // flipping bits of the chunk goes on by pairs of mma tiles.
  const Warp warp;
  const int lane = threadIdx.x % kWarpThreads;
  const std::uint32_t x_row = stages + (warp.row + lane % 16) * kRowBytes;
  const int w_lane_row = kTile.w_is_kn ? kTile.tile_m + warp.column / kPanelN * kTileK + lane % 16
                                       : kTile.tile_m + warp.column + lane % 8 + lane / 16 * 8;
  const std::uint32_t w_row = stages + w_lane_row * kRowBytes;
  const std::uint32_t x_chunk = stage_offset(lane % 8, lane / 16) % kRowBytes;
  const int w_lane_chunk = kTile.w_is_kn ? warp.column % kPanelN / kChunkElems + lane / 16 : lane / 8 % 2;
  const std::uint32_t w_chunk = stage_offset(lane % 8, w_lane_chunk) % kRowBytes;
  static_assert(!kTile.w_is_kn || kPanelN % kTile.warp_n() == 0);

  std::uint32_t x_fragments[2][Warp::kRows][4];  // of this step of k and the next
  std::uint32_t w_fragments[2][kPairs][4];

  const auto load_fragments = [&](int stage, int step) {
    const std::uint32_t offset = stage * kTile.stage_bytes();
#pragma unroll
    for (int i = 0; i < Warp::kRows; ++i)
      ldmatrix_x4(x_fragments[step % 2][i], x_row + offset + (x_chunk ^ step * kStepBytes) + i * kMmaM * kRowBytes);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      if constexpr (Tile::kShape.w_is_kn) {
        ldmatrix_x4_trans(w_fragments[step % 2][j],
                          w_row + offset + (w_chunk ^ j * 2 * kMmaN * 2) + step * kMmaK * kRowBytes);
      } else {
        ldmatrix_x4(w_fragments[step % 2][j],
                    w_row + offset + (w_chunk ^ step * kStepBytes) + j * 2 * kMmaN * kRowBytes);
      }
    }
  };

  // Fill all stages but one.
  Copies copies(operands, stages);
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    if (stage < slices) {
#pragma unroll
      for (int pass = 0; pass < Copies::kPasses; ++pass) copies.start(stage, pass);
      copies.next_slice();
    }
    cp_async_commit();
  }
  cp_async_wait<kStages - 2>();
  __syncthreads();
  load_fragments(0, 0);

  int read_stage = 0;
  int write_stage = kStages - 1;
  for (int slice = 0; slice < slices; ++slice) {
    // sums += X[:, slice] W[:, slice]^T  [warp_m, warp_n], one step of k at a time
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      constexpr int kLastStep = kSteps - 1;
      if (step == kLastStep) {
        // The next fragments come from the next slice: wait until it is there. The same barrier says that all warps
        // have read this slice, whose stage the next round overwrites.
        cp_async_commit();
        cp_async_wait<kStages - 2>();
        __syncthreads();
        read_stage = read_stage + 1 == kStages ? 0 : read_stage + 1;
      }
      load_fragments(read_stage, (step + 1) % kSteps);
      if (step < kLastStep && slice + kStages - 1 < slices) {
        // The copies of one slice are spread over the steps before the barrier.
#pragma unroll
        for (int pass = step * Copies::kPasses / kLastStep; pass < (step + 1) * Copies::kPasses / kLastStep; ++pass)
          copies.start(write_stage, pass);
      }
#pragma unroll
      for (int i = 0; i < Warp::kRows; ++i)
#pragma unroll
        for (int j = 0; j < Warp::kColumns; ++j)
          mma_m16n8k16<T>(sums[i][j], x_fragments[step % 2][i], w_fragments[step % 2][j / 2][j % 2 * 2],
                          w_fragments[step % 2][j / 2][j % 2 * 2 + 1]);
    }
    copies.next_slice();
    write_stage = write_stage + 1 == kStages ? 0 : write_stage + 1;
  }
}

}  // namespace inferometer
