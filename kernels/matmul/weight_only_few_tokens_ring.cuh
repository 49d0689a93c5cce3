// A warp's ring of stages in few_tokens_kernel: the copy engine fills them with slices of X and of the block's tiles of
// W, one lane starts the copies.
#pragma once

#include <cstdint>

#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_few_tokens_shape.hpp"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/tma.cuh"

namespace inferometer {

#if __CUDA_ARCH__ >= 900

// The block's tiles in memory. Those of a slice are contiguous within a panel; they may lie in two.
class TilesInPanels {
 public:
  template <class T>
  __device__ TilesInPanels(const FewTokensArgs<T>& args, int first_tile, int first_slice, int tile_bytes)
      : next_panel_((first_tile & -kPanelTiles) + kPanelTiles),
        end_tile_(min(first_tile + args.tiles, args.row_tiles)) {
    const int panel = next_panel_ - kPanelTiles;
    const int height = min(kPanelTiles, args.row_tiles - panel);
    first_bytes_ = (min(next_panel_, end_tile_) - first_tile) * tile_bytes;
    first_stride_ = height * tile_bytes * FewTokensShape::kWarps;
    first_ = args.weights.tiles +
             (std::int64_t{panel} * args.slices + first_slice * height + first_tile - panel) * tile_bytes;
    if (!in_two()) return;
    const int next_height = min(kPanelTiles, args.row_tiles - next_panel_);
    second_bytes_ = (end_tile_ - next_panel_) * tile_bytes;
    second_stride_ = next_height * tile_bytes * FewTokensShape::kWarps;
    second_ = args.weights.tiles + (std::int64_t{next_panel_} * args.slices + first_slice * next_height) * tile_bytes;
  }

  __device__ int bytes() const { return first_bytes_ + second_bytes_; }

  // Starts the copies of a slice, and turns to the warp's next.
  __device__ __forceinline__ void copy_next(std::uint32_t target, std::uint32_t barrier) {
    bulk_load(target, first_, first_bytes_, barrier);
    first_ += first_stride_;
    if (!in_two()) return;
    bulk_load(target + first_bytes_, second_, second_bytes_, barrier);
    second_ += second_stride_;
  }

 private:
  __device__ bool in_two() const { return end_tile_ > next_panel_; }

  int next_panel_;
  int end_tile_;
  const unsigned char* first_;
  const unsigned char* second_ = nullptr;
  int first_stride_;
  int second_stride_ = 0;
  int first_bytes_;
  int second_bytes_ = 0;
};

// A stage holds a slice of X and, in a place of its own, the block's tiles in that slice. The slices are every
// kWarps-th from `first_slice` on. Of tiles past the last row of W and of tokens past the last one nothing is copied:
// what is there instead reaches only sums that are not stored.
template <class T, class Shape>
class FewTokensRing {
 public:
  // Sets up the barriers and starts to fill all stages.
  __device__ FewTokensRing(const FewTokensArgs<T>& args, const CUtensorMap* x, int first_tile, int first_slice,
                           int end_slice, int tile_bytes, int warp, unsigned char* shared)
      : tiles_(args, first_tile, first_slice, tile_bytes),
        x_(x),
        row_(args.x_is_row ? args.x : nullptr),
        next_slice_(first_slice),
        end_slice_(end_slice),
        stages_(args.stages),
        weight_bytes_(args.tiles * tile_bytes),
        copied_bytes_(args.m * kSliceK * 2 + tiles_.bytes()) {
    constexpr FewTokensShape kShape = Shape::kShape;
    const std::uint32_t base = shared_address(shared);
    x_stage_ = base + warp * stages_ * Shape::kXBytes;
    weights_ = base + kShape.weights_at(stages_) + warp * stages_ * weight_bytes_;
    barrier_ = base + kShape.barriers_at(args.tiles, tile_bytes, stages_) + warp * stages_ * 8;
    const int filled = min(stages_, (end_slice - first_slice + Shape::kWarps - 1) / Shape::kWarps);
    if (threadIdx.x % 32 == 0) {
#pragma unroll 1
      for (int stage = 0; stage < stages_; ++stage) mbarrier_init(barrier_ + stage * 8, 1);
      mbarrier_init_fence();
#pragma unroll 1
      for (int stage = 0; stage < filled; ++stage)
        fill(first_slice + stage * Shape::kWarps, x_stage_ + stage * Shape::kXBytes, weights_ + stage * weight_bytes_,
             barrier_ + stage * 8);
    }
    next_slice_ += filled * Shape::kWarps;
    __syncwarp();
  }

  // Until the current stage is full.
  __device__ __forceinline__ void wait() const { mbarrier_wait(barrier_, phase_); }
  __device__ __forceinline__ std::uint32_t x() const { return x_stage_; }
  __device__ __forceinline__ std::uint32_t weights() const { return weights_; }

  // The warp is done with the current stage: refills it and goes on to the next.
  __device__ __forceinline__ void next() {
    __syncwarp();
    if (next_slice_ < end_slice_ && threadIdx.x % 32 == 0) fill(next_slice_, x_stage_, weights_, barrier_);
    next_slice_ += Shape::kWarps;
    x_stage_ += Shape::kXBytes;
    weights_ += weight_bytes_;
    barrier_ += 8;
    if (++stage_ < stages_) return;
    x_stage_ -= stages_ * Shape::kXBytes;
    weights_ -= stages_ * weight_bytes_;
    barrier_ -= stages_ * 8;
    stage_ = 0;
    phase_ ^= 1;
  }

 private:
  // One lane. Copies arrive in the order of their start: X comes right behind its slice of W. Token 0 lies in a panel
  // as it does in X.
  __device__ __forceinline__ void fill(int slice, std::uint32_t x_stage, std::uint32_t weights, std::uint32_t barrier) {
    mbarrier_arrive_expect_bytes(barrier, copied_bytes_);
    tiles_.copy_next(weights, barrier);
    if (row_ != nullptr) {
      bulk_load(x_stage, row_ + slice * kSliceK, kSliceK * sizeof(T), barrier);
    } else {
      tma_load_2d(x_stage, x_, barrier, slice * kSliceK, 0);
    }
  }

  TilesInPanels tiles_;
  const CUtensorMap* x_;
  const T* row_;
  int next_slice_;  // to be copied
  int end_slice_;
  int stages_;
  int weight_bytes_;
  int copied_bytes_;
  int stage_ = 0;
  std::uint32_t phase_ = 0;
  // Of the current stage.
  std::uint32_t x_stage_;
  std::uint32_t weights_;
  std::uint32_t barrier_;
};

#endif

}  // namespace inferometer
