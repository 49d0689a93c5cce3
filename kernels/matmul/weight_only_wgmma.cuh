// Y = X W^T for more than a few tokens and packed weights of 8 or 4 bits (packing.hpp) on Hopper's tensor cores.
//
//   in   x  [m, k]  w  [n, k] packed, scales, zero points     f16 or bf16 around the codes
//   out  y  [m, n]                                            accumulated in f32, rounded once
//
// Y^T = W X^T: W is wgmma's A, in registers, since it has to pass through them anyway, and X its B, in shared memory as
// the copy engine leaves it. So a weight is converted once for all tokens of a tile, and nothing converted is stored.
// A weight times its scale is rounded once to the type of X. Four warps copy slices in turn; warpgroups multiply one
// slice while they, or others, convert the next. Where tiles are few, warpgroups of a block share a band of 64 rows,
// and blocks of a cluster a tile, each with its slices of k; they add up in a fixed order: the result is the same bit
// for bit.
#pragma once

#include <cstdint>

#include "kernels/matmul/weight_only_wgmma_maps.hpp"
#include "kernels/matmul/weight_only_wgmma_multiply.cuh"
#include "kernels/matmul/weight_only_wgmma_shape.hpp"
#include "kernels/matmul/weight_only_wgmma_slices.cuh"
#include "kernels/matmul/weight_only_wgmma_store.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <int kBitCount, bool kIsPlain, int kTokenCount, int kBandCount, bool kIsGatedProduct>
struct WgmmaConfig {
  static constexpr WeightOnlyWgmmaShape kShape = {.bits = kBitCount, .tokens = kTokenCount, .bands = kBandCount};
  static constexpr int kConsumers = kShape.consumers();
  static constexpr int kBits = kBitCount;
  static constexpr bool kPlain = kIsPlain;
  static constexpr bool kGated = kIsGatedProduct;
  static constexpr int kTokens = kTokenCount;
  static constexpr int kBands = kBandCount;
  static constexpr int kWays = kShape.ways();
  static constexpr int kStages = kShape.stages();
  static constexpr int kXBytes = kShape.x_bytes();
  static constexpr int kStageBytes = kShape.stage_bytes();
  static constexpr int kStagedAt = kShape.staged_at();
  static constexpr int kStagedBytes = kShape.staged_bytes();
  static constexpr int kBarriersAt = kShape.barriers_at();
  static constexpr int kSlabs = kShape.slabs();
  static constexpr int kSlabTokens = kShape.slab_tokens();
  static constexpr int kPieceFloats = kShape.piece_floats();
  static constexpr int kPartBytes = kShape.part_bytes();
  static constexpr int kSentAt = kShape.sent_at();
  static_assert(kStagedAt >= kShape.exchange_bytes(), "parts arrive in place of the stages");
};

#endif

// Blocks of a cluster share a tile: blockIdx.x = tile * parts + part. Alone, a block takes every gridDim.x-th tile.
template <class T, int kBits, bool kPlain, int kTokens, int kBands, bool kGated = false>
__global__ void __launch_bounds__(WeightOnlyWgmmaShape{kBits, kTokens, kBands}.threads(), 1)
    weight_only_wgmma_kernel(const __grid_constant__ WeightOnlyWgmmaArgs<T> args,
                             const __grid_constant__ WeightOnlyWgmmaX x) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = WgmmaConfig<kBits, kPlain, kTokens, kBands, kGated>;
  constexpr int kThreads = Shape::kShape.threads();
  extern __shared__ __align__(1024) unsigned char smem[];
  const unsigned warp = __shfl_sync(~0U, threadIdx.x / 32, 0);  // the compiler learns that all lanes agree
  const auto warpgroup = static_cast<int>(warp / 4);
  const bool is_shared = Shape::kWays > 1 || args.parts > 1;
  if (warpgroup == Shape::kConsumers) {
    keep_registers<Shape::kShape.copy_registers()>();
    if (threadIdx.x % 32 == 0) tma_prefetch_map(args.token_tiles == 1 ? &x.last : &x.whole);
    CopiedSlices<Shape> turn(shared_address(smem), static_cast<int>(warp % WeightOnlyWgmmaShape::kCopyWarps));
    init_barriers<Shape>(turn.full());
    named_barrier_arrive(kStartBarrier, kThreads);
    for (int t = blockIdx.x >> args.parts_log2; t < args.tiles; t += gridDim.x >> args.parts_log2) {
      copy_slices<T, Shape>(args, x, WgmmaTile(args, t), turn);
      if (is_shared) wait_for_sharers(args.parts);
    }
  } else {
    take_registers<Shape::kShape.multiply_registers()>();
    const TileReader<T, Shape> reader(args.weights.shape, warpgroup % kBands);
    MultipliedSlices<Shape> turn(shared_address(smem), warpgroup / kBands);
    named_barrier_sync(kStartBarrier, kThreads);
    for (int t = blockIdx.x >> args.parts_log2; t < args.tiles; t += gridDim.x >> args.parts_log2) {
      const WgmmaTile tile(args, t);
      BandSums<Shape> sums = {};
      multiply_slices<T, Shape>(reader, tile.slices, turn, sums);
      if (is_shared) {
        share_and_store<T, Shape>(args, t, sums, smem);
      } else {
#pragma unroll
        for (int slab = 0; slab < Shape::kSlabs; ++slab)
          store_piece<T, Shape>(args, &sums[slab * Shape::kPieceFloats], tile, warpgroup, slab, smem);
      }
    }
  }
#endif
}

}  // namespace inferometer
