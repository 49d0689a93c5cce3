// Y = X W^T on Hopper's tensor cores: wgmma from shared memory, fed by the copy engine.
//
//   in   x  [m, k]   w  [n, k]     of T; rows 16-byte aligned; tiles that are w_is_kn: w [k, n]
//   out  y  [m, n]                 16-bit elements; `output` rounds the sums, or does more (sm90_ends.cuh)
//
// Bound by shared memory, the tensor cores and power for large m: a tile of 128 x 256 has wgmma read 80 and the copies
// write 47 of the 128 bytes that shared memory moves in a cycle, one of 256 x 192 85 and 37. Bound by reading W once
// for small m: A is W then, and k is cut into the blocks of a cluster until there are enough of them, or X is A and W's
// rows are shared out evenly.
#pragma once

#include <cstdint>

#include "kernels/matmul/sm90_args.hpp"
#include "kernels/matmul/sm90_ends.cuh"
#include "kernels/matmul/sm90_mainloop.cuh"
#include "kernels/matmul/sm90_split.cuh"
#include "kernels/matmul/sm90_tile.hpp"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <class Tile, class Output, class Sum, int kCount>
__device__ __forceinline__ void store_sums(const Sm90End<Tile, Output>& end, typename Sm90End<Tile, Output>::Box& box,
                                           Sm90Origin tile, const Sum (&sums)[kCount]) {
  constexpr bool kHasBox = Sm90End<Tile, Output>::kHasBox;
  constexpr int kGroups = kCount / 4;
  constexpr int kBoxGroups = Tile::kTile.box_groups();
  static_assert(Tile::kTile.direct_stores || kGroups % kBoxGroups == 0);
#pragma unroll
  for (int first = 0; first < kGroups; first += kBoxGroups) {
    if constexpr (kHasBox) box.begin();
#pragma unroll
    for (int at = 0; at < kBoxGroups && first + at < kGroups; ++at)
      end.put(box, tile, first + at, at, &sums[4 * (first + at)]);
    if constexpr (kHasBox) box.send(tile, first, kGroups - first);
  }
}

template <class Tile, class Output, class Sum, int kCount>
__device__ __forceinline__ void store_split_sums(const Sm90End<Tile, Output>& end,
                                                 typename Sm90End<Tile, Output>::Box& box, Sm90Origin tile,
                                                 const PartialSums<Tile>& parts, const Sum (&sums)[kCount]) {
  constexpr bool kHasBox = Sm90End<Tile, Output>::kHasBox;
  constexpr std::uint32_t kAtOnce = 4;
  parts.exchange(sums);
  constexpr std::uint32_t kMost = Sm90End<Tile, Output>::Box::kMostGroups;
  for (std::uint32_t first = parts.first_group(); first < parts.end_group(); first += kMost) {
    const std::uint32_t groups = min(parts.end_group() - first, kMost);
    if constexpr (kHasBox) box.begin();
    for (std::uint32_t at = 0; at < groups; at += kAtOnce) {
      const std::uint32_t count = min(groups - at, kAtOnce);
      Sum total[kAtOnce][4];
      parts.total(first + at, count, total);
#pragma unroll
      for (std::uint32_t i = 0; i < kAtOnce; ++i)
        if (i < count) end.put(box, tile, first + at + i, at + i, total[i]);
    }
    if constexpr (kHasBox) box.send_shared(tile, first, groups);
  }
}

// Calls f.template operator()<kRowsEach, N>(origin) for all pieces of this block's work: kRowsEach times part_a() rows
// of A by N of B. Tiles and parts come in loops of their own: in one for both ptxas spills 192 sums.
template <class Tile, class F>
__device__ __forceinline__ void for_each_piece(const Sm90Work& work, F&& f) {
  constexpr Sm90Tile kTile = Tile::kTile;
  constexpr auto kParts = static_cast<std::uint32_t>(kTile.parts());
  const std::uint32_t pieces = work.pieces(kParts);
  std::uint32_t piece = kTile.pairs ? blockIdx.x : cluster_id();
  const std::uint32_t step = kTile.pairs ? gridDim.x : cluster_count();
  for (; piece < (kParts == 1 ? pieces : work.whole); piece += step) {
    const Sm90TileIndex tile = work.order[piece];
    f.template operator()<kTile.rows_each, kTile.tile_b>(Sm90Origin{tile.a * kTile.tile_a(), tile.b * kTile.tile_b});
  }
  if constexpr (kParts > 1) {
    for (; piece < pieces; piece += step) {
      const std::uint32_t part = piece - work.whole;
      const Sm90TileIndex tile = work.order[work.whole + part / kParts];
      const std::uint32_t at = part % kParts;
      const Sm90Origin origin{tile.a * kTile.tile_a() + (kTile.rows_each > 1 ? at * kTile.part_a() : 0),
                              tile.b * kTile.tile_b + (kTile.rows_each > 1 ? 0 : at * kTile.part_b())};
      f.template operator()<1, kTile.part_b()>(origin);
    }
  }
}

// What all threads of a block know.
template <class Tile>
struct BlockParts {
  StageRing<Tile::kTile.stages> ring;
  PartialSums<Tile> sums;
  std::uint32_t stages;  // shared address
  std::uint32_t rank;    // in the cluster

  __device__ BlockParts(const Sm90Args& args, std::uint32_t smem)
      : ring(smem + Tile::kTile.barriers_at()),
        sums(args, smem, smem + Tile::kTile.barriers_at() + 2 * Tile::kTile.stages * 8, cluster_rank()),
        stages(smem),
        rank(cluster_rank()) {}
};

constexpr int kBeginBarrier = 0;  // after it the block's mbarriers are known
// Warps that multiply; those after them copy.
template <class Tile>
constexpr std::uint32_t kReaders = Tile::kTile.groups * 4;

// All threads of a pair: the mbarriers of both blocks are known, ordered by mbarrier_init_fence.
__device__ __forceinline__ void meet_other_block() {
  cluster_arrive_relaxed();
  cluster_wait();
}

// The warps past kReaders. They do not wait for the others to begin. A block's every second tile goes through k
// backwards: it begins with the rows of X that L2 still holds.
template <class T, class Tile>
__device__ __forceinline__ void copy_tiles(const Sm90Args& args, BlockParts<Tile>& block) {
  const std::uint32_t lane = threadIdx.x - kReaders<Tile> * 32;
  if (lane == 1) tma_prefetch_map(args.a.rows >= args.a.box ? &args.a.whole_map : &args.a.rest_map);
  if (lane == 2) tma_prefetch_map(args.b.rows >= args.b.box ? &args.b.whole_map : &args.b.rest_map);
  const bool copies = lane == 0;
  if (copies) {
    block.ring.initialize(Tile::kTile.pairs ? 2 * kReaders<Tile> : kReaders<Tile>);
    if (Tile::kTile.can_split() && args.work.split > 1) block.sums.initialize();
    mbarrier_init_fence();
  }
  __syncwarp();
  named_barrier_arrive(kBeginBarrier, Tile::kTile.threads());
  if constexpr (Tile::kTile.pairs) meet_other_block();
  if (copies) {
    bool backwards = false;
    for_each_piece<Tile>(args.work, [&]<int kRowsEach, int N>(Sm90Origin tile) {
      copy_slices<T, Tile, kRowsEach, N>(args, tile, block.rank, block.stages, block.ring, backwards);
      backwards = !backwards;
    });
  }
}

template <class T, class Tile, class Output>
__device__ __forceinline__ void multiply_tiles(const Sm90Args& args, const Output& output, BlockParts<Tile>& block) {
  constexpr Sm90Tile kTile = Tile::kTile;
  const std::uint32_t group = threadIdx.x / kSm90Warpgroup;
  Sm90End<Tile, Output> end(args, output, block.stages);
  typename Sm90End<Tile, Output>::Box box(
      args, block.stages + kTile.boxes_at() + group * kTile.boxes() * kTile.box_bytes(), group);
  if (!kTile.direct_stores && threadIdx.x == 0 && args.y_aligned) tma_prefetch_map(&args.y);
  end.begin();
  named_barrier_sync(kBeginBarrier, kTile.threads());
  if constexpr (kTile.pairs) meet_other_block();
  for_each_piece<Tile>(args.work, [&]<int kRowsEach, int N>(Sm90Origin tile) {
    constexpr std::uint32_t kRows = kRowsEach * kSm90GroupRows;
    if (kTile.can_split() && args.work.split > 1) {
      end.expect(tile, block.sums.first_group(), block.sums.own_groups());
    } else {
      end.expect(tile, 0, N / 8);
    }
    Sm90Sums<T, N> sums[kRowsEach];
    multiply_slices<T, Tile, kRowsEach, N>(args.work.slices_of(block.rank), block.stages, group * kRows, block.ring,
                                           sums);
    if constexpr (Tile::kTile.can_split()) {
      if (args.work.split > 1) {  // one tile a cluster: nothing is copied into the stages any more
        store_split_sums(end, box, tile, block.sums, sums[0]);
        return;
      }
    }
    tile.a += group * (kRows - kSm90GroupRows);  // the box adds 64 rows a warpgroup
#pragma unroll
    for (int i = 0; i < kRowsEach; ++i) {
      store_sums(end, box, tile, sums[i]);
      tile.a += kSm90GroupRows;
    }
  });
  box.finish();
}

#endif

template <class T, class Tile, class Output>
__global__ void __launch_bounds__(Tile::kTile.threads(), Tile::kTile.blocks_per_sm)
    sm90_matmul_kernel(const __grid_constant__ Sm90Args args, const Output output) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr bool kShifts = Tile::kTile.shifts_registers();
  extern __shared__ __align__(1024) unsigned char smem[];  // the swizzle is one of addresses: 8 rows are 1024 bytes
  BlockParts<Tile> block(args, shared_address(smem));
  if (threadIdx.x >= kReaders<Tile> * 32) {
    if constexpr (kShifts) keep_registers<24>();
    copy_tiles<T, Tile>(args, block);
  } else {
    if constexpr (kShifts) take_registers<240>();
    multiply_tiles<T, Tile>(args, output, block);
  }
#endif
}

}  // namespace inferometer
