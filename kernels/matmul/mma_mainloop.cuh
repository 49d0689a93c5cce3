// The inner loop of mma_matmul_kernel: sums += X[rows, slices] W[columns, slices]^T for one tile of Y.
//
// Slices of kTileK go from global to shared memory by cp.async, `stages` deep, and from there by ldmatrix into
// fragments that are loaded ahead of the mma that takes them. After: the multistage mainloop of CUTLASS 2 (Thakkar et
// al., github.com/NVIDIA/cutlass), its XOR-swizzled stages and its double-buffered fragments.
#pragma once

#include <cstdint>

#include "kernels/matmul/tile_shape.cuh"
#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"

namespace inferometer {

// A tile's rows of X and W, from the first element of k it is to use.
template <class T>
struct TileOperands {
  const T* x;
  const T* w;
  std::int64_t row_stride;  // k, in elements
  int rows;                 // of the tile inside X
  int columns;              // of the tile inside Y, rows of W
  int k_left;               // elements of k from here to its end
};

// One thread's share of the copies into a stage: one chunk of every kRowsPerPass-th row, X's rows first, then W's.
template <class T, class Tile>
class StageCopies {
  static constexpr TileShape kTile = Tile::kShape;
  static constexpr int kRowChunks = kTileK / kChunkElems;

 public:
  static constexpr int kRowsPerPass = kTile.threads() / kRowChunks;
  static constexpr int kPassesX = kTile.tile_m / kRowsPerPass;
  static constexpr int kPasses = kPassesX + kTile.tile_n / kRowsPerPass;
  static_assert(kRowsPerPass % 8 == 0, "the swizzle of a thread's rows must be the same in every pass");
  static_assert(kTile.tile_m % kRowsPerPass == 0 && kTile.tile_n % kRowsPerPass == 0, "passes fill whole tiles");

  __device__ StageCopies(const TileOperands<T>& operands, std::uint32_t stages)
      : pass_stride_(kRowsPerPass * operands.row_stride) {
    const int row = threadIdx.x / kRowChunks;
    const int chunk = threadIdx.x % kRowChunks;
    x_ = operands.x + row * operands.row_stride + chunk * kChunkElems;
    w_ = operands.w + row * operands.row_stride + chunk * kChunkElems;
    rows_left_ = operands.rows - row;
    columns_left_ = operands.columns - row;
    k_left_ = operands.k_left - chunk * kChunkElems;
    destination_ = stages + stage_offset(row, chunk);
  }

  // Starts pass `pass` of the next slice into `stage`. Rows past the edge of X or W and k past its end become zeros.
  __device__ __forceinline__ void start(int stage, int pass) const {
    const bool is_x = pass < kPassesX;
    const int tile_pass = is_x ? pass : pass - kPassesX;
    const bool inside = tile_pass * kRowsPerPass < (is_x ? rows_left_ : columns_left_) && k_left_ > 0;
    cp_async_16b_zfill(destination_ + stage * kTile.stage_bytes() + pass * kRowsPerPass * kTileK * 2,
                       (is_x ? x_ : w_) + tile_pass * pass_stride_, inside);
  }

  __device__ __forceinline__ void next_slice() {
    x_ += kTileK;
    w_ += kTileK;
    k_left_ -= kTileK;
  }

 private:
  const T* x_;
  const T* w_;
  std::int64_t pass_stride_;  // elements
  int rows_left_;
  int columns_left_;
  int k_left_;
  std::uint32_t destination_;
};

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
  using Copies = StageCopies<T, Tile>;
  using Warp = WarpTiles<Tile>;
  constexpr TileShape kTile = Tile::kShape;
  constexpr int kStages = kTile.stages;
  constexpr int kPairs = Warp::kColumns / 2;
  constexpr int kSteps = kTileK / kMmaK;
  constexpr int kRowBytes = kTileK * 2;
  constexpr int kStepBytes = kMmaK * 2;

  // Lane l's row and chunk in ldmatrix_x4: X's tiles go down the rows first, W's along k first (see ptx/mma.cuh).
  const Warp warp;
  const int lane = threadIdx.x % kWarpThreads;
  const std::uint32_t x_row = stages + (warp.row + lane % 16) * kRowBytes;
  const std::uint32_t w_row = stages + (kTile.tile_m + warp.column + lane % 8 + lane / 16 * 8) * kRowBytes;
  const std::uint32_t x_chunk = stage_offset(lane % 8, lane / 16) % kRowBytes;
  const std::uint32_t w_chunk = stage_offset(lane % 8, lane / 8 % 2) % kRowBytes;

  std::uint32_t x_fragments[2][Warp::kRows][4];  // of this step of k and the next
  std::uint32_t w_fragments[2][kPairs][4];

  const auto load_fragments = [&](int stage, int step) {
    const std::uint32_t offset = stage * kTile.stage_bytes();
#pragma unroll
    for (int i = 0; i < Warp::kRows; ++i)
      ldmatrix_x4(x_fragments[step % 2][i], x_row + offset + (x_chunk ^ step * kStepBytes) + i * kMmaM * kRowBytes);
#pragma unroll
    for (int j = 0; j < kPairs; ++j)
      ldmatrix_x4(w_fragments[step % 2][j], w_row + offset + (w_chunk ^ step * kStepBytes) + j * 2 * kMmaN * kRowBytes);
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
