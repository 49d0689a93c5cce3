// How the blocks of weight_only_wgmma_kernel share out slices, and the stages that slices go through: copying warps
// fill them, warpgroups multiply what is in them.
#pragma once

#include <cstdint>

#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_fragment.cuh"
#include "kernels/matmul/weight_only_wgmma_maps.hpp"
#include "kernels/matmul/weight_only_wgmma_shape.hpp"
#include "kernels/matmul/work_split.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/tma.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The block's part of k.
template <class T>
__device__ __forceinline__ int block_part(const WeightOnlyWgmmaArgs<T>& args) {
  return static_cast<int>(blockIdx.x & (args.parts - 1));
}

// The block's share of one tile of Y.
struct WgmmaTile {
  int row_tile;
  int token_tile;
  int first_slice;
  int slices;

  template <class T>
  __device__ WgmmaTile(const WeightOnlyWgmmaArgs<T>& args, int index)
      : row_tile(index),
        token_tile(0),
        first_slice(block_part(args) * args.part_slices + min(block_part(args), args.long_parts)),
        slices(args.part_slices + (block_part(args) < args.long_parts ? 1 : 0)) {
    if (args.token_tiles == 1) return;
    const auto tile = tile_in_order<std::uint32_t>(index, args.token_tiles, args.row_tiles, args.order_band);
    token_tile = static_cast<int>(tile.m);
    row_tile = static_cast<int>(tile.n);
  }
};

inline constexpr int kStartBarrier = 7;  // a named one: store_piece has those of the warpgroups

// Each copying warp: sets up the barriers of the stages that it fills, `full` of each stage, then `empty` of each;
// `first` is that of its first stage. It may start its copies at once; who multiplies waits at kStartBarrier.
template <class Shape>
__device__ __forceinline__ void init_barriers(std::uint32_t first) {
  constexpr int kCopyWarps = WeightOnlyWgmmaShape::kCopyWarps;
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int stage = 0; stage < Shape::kStages; stage += kCopyWarps) {
      mbarrier_init(first + stage * 8, 1);
      mbarrier_init(first + (Shape::kStages + stage) * 8,
                    Shape::kBands * 128);  // a warpgroup for each band reads a stage
    }
    mbarrier_init_fence();
  }
  __syncwarp();
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
  // Each lane that has read: an arrival comes behind the reads of its own thread.
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

// A copying warp's slices of a tile: X and the packed tiles of W, which are contiguous. The warp calls.
template <class T, class Shape>
__device__ __forceinline__ void copy_slices(const WeightOnlyWgmmaArgs<T>& args, const WeightOnlyWgmmaX& x,
                                            const WgmmaTile& tile, CopiedSlices<Shape>& turn) {
  constexpr int kTiles = Shape::kBands * kBandTiles;
  const int tile_bytes = TileForm<Shape::kBits, Shape::kPlain>(args.weights.shape).tile_bytes();
  const int first_tile = tile.row_tile * kTiles;
  const int panel = first_tile & -kPanelTiles;
  const int height = min(kPanelTiles, args.weight_row_tiles - panel);
  const int bytes = min(kTiles, args.weight_row_tiles - first_tile) * tile_bytes;
  const int stride = height * tile_bytes;
  const bool is_last = tile.token_tile == args.token_tiles - 1;
  const int x_bytes = is_last ? args.last_tokens * kSliceK * 2 : Shape::kXBytes;
  const CUtensorMap* const map = is_last ? &x.last : &x.whole;
  const int first_slice = tile.first_slice + turn.slice();
  const unsigned char* weights =
      args.weights.tiles +
      (std::int64_t{panel} * args.slices + std::int64_t{first_slice} * height + first_tile - panel) * tile_bytes;
  for (int k = first_slice * kSliceK; turn.slice() < tile.slices; turn.next()) {
    turn.wait_empty();
    __syncwarp();  // or a lane left behind by two phases would wait for a third
    if (threadIdx.x % 32 == 0) {
      mbarrier_arrive_expect_bytes(turn.full(), x_bytes + bytes);
      bulk_load(turn.stage() + Shape::kXBytes, weights, bytes, turn.full());
      tma_load_2d(turn.stage(), map, turn.full(), k, tile.token_tile * Shape::kTokens);
    }
    weights += WeightOnlyWgmmaShape::kCopyWarps * stride;
    k += WeightOnlyWgmmaShape::kCopyWarps * kSliceK;
  }
  turn.next_tile(tile.slices);
}

#endif

}  // namespace inferometer
