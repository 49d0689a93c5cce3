// From global memory to a stage of mma_matmul_kernel, by cp.async.
#pragma once

#include <cstdint>

#include "kernels/matmul/tile_shape.cuh"
#include "kernels/ptx/cp_async.cuh"

namespace inferometer {

// A tile's rows of X and W, from the first element of k it is to use.
template <class T>
struct TileOperands {
  const T* x;
  const T* w;
  std::int64_t row_stride;  // k, in elements
  std::int64_t n;           // row stride of a W stored [k, n]
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

// The same for a W stored [k, n]: rows of k, panel by panel.
template <class T, class Tile>
class KnStageCopies {
  static constexpr TileShape kTile = Tile::kShape;
  using XCopies = StageCopies<T, Tile>;
  static constexpr int kRowsPerPass = XCopies::kRowsPerPass;
  static constexpr int kPassesX = XCopies::kPassesX;
  static constexpr int kPanelPasses = kTileK / kRowsPerPass;
  static_assert(kTileK % kRowsPerPass == 0 && kTile.tile_n % kPanelN == 0, "passes fill whole panels");

 public:
  static constexpr int kPasses = XCopies::kPasses;

  __device__ KnStageCopies(const TileOperands<T>& operands, std::uint32_t stages)
      : x_(operands, stages), w_pass_stride_(kRowsPerPass * operands.n) {
    const int row = threadIdx.x / (kTileK / kChunkElems);
    const int chunk = threadIdx.x % (kTileK / kChunkElems);
    w_ = operands.w + row * operands.n + chunk * kChunkElems;
    columns_left_ = operands.columns - chunk * kChunkElems;
    k_left_ = operands.k_left - row;
    destination_ = stages + stage_offset(row, chunk);
  }

  __device__ __forceinline__ void start(int stage, int pass) const {
    if (pass < kPassesX) {
      x_.start(stage, pass);
      return;
    }
    const int panel = (pass - kPassesX) / kPanelPasses;
    const int panel_pass = (pass - kPassesX) % kPanelPasses;
    const bool inside = panel * kPanelN < columns_left_ && panel_pass * kRowsPerPass < k_left_;
    cp_async_16b_zfill(destination_ + stage * kTile.stage_bytes() + pass * kRowsPerPass * kTileK * 2,
                       w_ + panel_pass * w_pass_stride_ + panel * kPanelN, inside);
  }

  __device__ __forceinline__ void next_slice() {
    x_.next_slice();
    w_ += kPanelPasses * w_pass_stride_;
    k_left_ -= kTileK;
  }

 private:
  XCopies x_;  // of which W's part is not used
  const T* w_;
  std::int64_t w_pass_stride_;  // elements
  int columns_left_;
  int k_left_;
  std::uint32_t destination_;
};

}  // namespace inferometer
