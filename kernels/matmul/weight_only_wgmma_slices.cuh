// How the blocks of weight_only_wgmma_kernel share out slices, and the stages that slices go through: copying warps
// fill them, warpgroups multiply what is in them.
#pragma once

#include <cstdint>

#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_wgmma_shape.hpp"
#include "kernels/matmul/work_split.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/tma.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The block's share of one tile of Y.
struct WgmmaTile {
  int row_tile;
  int token_tile;
  int first_slice;
  int slices;

  template <class T>
  __device__ WgmmaTile(const WeightOnlyWgmmaArgs<T>& args, int index, int part) {
    const TileIndex tile = tile_in_order(index, args.token_tiles, args.row_tiles, args.order_band);
    token_tile = static_cast<int>(tile.m);
    row_tile = static_cast<int>(tile.n);
    const std::int64_t all_slices = args.weights.shape.slices();
    first_slice = static_cast<int>(all_slices * part / args.parts);
    slices = static_cast<int>(all_slices * (part + 1) / args.parts) - first_slice;
  }
};

// The barriers of the stages: `full` of each, then `empty` of each.
template <class Shape>
__device__ void init_barriers(std::uint32_t shared) {
  const std::uint32_t barriers = shared + Shape::kBarriersAt;
  for (int s = 0; s < Shape::kStages; ++s) {
    mbarrier_init(barriers + s * 8, 1);
    mbarrier_init(barriers + (Shape::kStages + s) * 8, Shape::kBands * 4);  // a warpgroup for each band reads a stage
  }
  mbarrier_init_fence();
}

// Every kStride-th slice of the block's tiles, from `first` on, and the stages they go through in turn. kStride divides
// the number of stages, so that a stage is always filled by the same warp and read by the same warpgroups: one that ran
// ahead of another through the same stage could not tell from a barrier's parity that the other has yet to come.
template <class Shape, int kStride>
class SlicesInTurn {
  static_assert(Shape::kStages % kStride == 0);

 public:
  __device__ SlicesInTurn(std::uint32_t shared, int first)
      : stage_(shared + first * Shape::kStageBytes),
        barrier_(shared + Shape::kBarriersAt + first * 8),
        index_(first),
        slice_(first) {}

  // Of the current tile; at or past the tile's end when the next one is of a later tile.
  __device__ __forceinline__ int slice() const { return slice_; }
  __device__ __forceinline__ std::uint32_t stage() const { return stage_; }
  __device__ __forceinline__ std::uint32_t full() const { return barrier_; }
  __device__ __forceinline__ void wait_full() const { mbarrier_wait(barrier_, phase_); }
  __device__ __forceinline__ void wait_empty() const { mbarrier_wait(barrier_ + kEmptyAt, phase_ ^ 1); }
  __device__ __forceinline__ void release() const { mbarrier_arrive(barrier_ + kEmptyAt); }

  __device__ __forceinline__ void next() {
    slice_ += kStride;
    index_ += kStride;
    stage_ += kStride * Shape::kStageBytes;
    barrier_ += kStride * 8;
    if (index_ < Shape::kStages) return;
    index_ -= Shape::kStages;
    stage_ -= Shape::kStages * Shape::kStageBytes;
    barrier_ -= Shape::kStages * 8;
    phase_ ^= 1;
  }
  // From a tile of `slices` slices to the next.
  __device__ __forceinline__ void next_tile(int slices) { slice_ -= slices; }

 private:
  static constexpr int kEmptyAt = Shape::kStages * 8;

  std::uint32_t stage_;
  std::uint32_t barrier_;
  int index_;
  int slice_;
  std::uint32_t phase_ = 0;
};

template <class Shape>
using CopiedSlices = SlicesInTurn<Shape, WeightOnlyWgmmaShape::kCopyWarps>;
template <class Shape>
using MultipliedSlices = SlicesInTurn<Shape, Shape::kWays>;

// A copying warp's slices of a tile: X and the packed tiles of W, which are contiguous. One thread calls.
template <class T, class Shape>
__device__ __forceinline__ void copy_slices(const WeightOnlyWgmmaArgs<T>& args, const CUtensorMap* x,
                                            const WgmmaTile& tile, CopiedSlices<Shape>& turn) {
  constexpr int kTiles = Shape::kBands * kBandTiles;
  const PackedShape& shape = args.weights.shape;
  const std::int64_t first_tile = std::int64_t{tile.row_tile} * kTiles;
  const auto tiles = static_cast<int>(min(shape.row_tiles() - first_tile, std::int64_t{kTiles}));
  const std::uint32_t bytes = tiles * shape.tile_bytes();
  const unsigned char* const weights = args.weights.tiles + shape.tile_at(first_tile, tile.first_slice);
  const auto slice_bytes = static_cast<std::uint32_t>(shape.tile_at(first_tile, 1) - shape.tile_at(first_tile, 0));
  for (; turn.slice() < tile.slices; turn.next()) {
    turn.wait_empty();
    mbarrier_arrive_expect_bytes(turn.full(), Shape::kXBytes + bytes);
    bulk_load(turn.stage() + Shape::kXBytes, weights + std::int64_t{turn.slice()} * slice_bytes, bytes, turn.full());
    tma_load_2d(turn.stage(), x, turn.full(), (tile.first_slice + turn.slice()) * kSliceK,
                tile.token_tile * Shape::kTokens);
  }
  turn.next_tile(tile.slices);
}

#endif

}  // namespace inferometer
