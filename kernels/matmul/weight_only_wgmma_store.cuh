// The end of a tile of weight_only_wgmma_kernel: who shares it adds up, and Y is rounded and stored.
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/weight_only_wgmma_multiply.cuh"
#include "kernels/matmul/weight_only_wgmma_shape.hpp"
#include "kernels/matmul/weight_only_wgmma_slices.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/ld_shared_wide.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/stmatrix.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// All threads of the blocks that share a tile. Only with kPublishes do all see what each wrote before: between blocks
// that is a fence of the whole GPU.
template <bool kPublishes>
__device__ __forceinline__ void meet(int parts) {
  if (parts == 1) {
    __syncthreads();
    return;
  }
  if constexpr (kPublishes) {
    cluster_arrive();
  } else {
    cluster_arrive_relaxed();
  }
  cluster_wait();
}

// Rounds the sums of a slab of the tile's tokens in one band and stores them. They go through shared memory to leave
// in rows of 128 bytes. The warpgroup calls.
template <class T, class Shape>
__device__ __forceinline__ void store_piece(const WeightOnlyWgmmaArgs<T>& args, const float* sums,
                                            const WgmmaTile& tile, int band, int slab, unsigned char* shared) {
  constexpr int kCount = Shape::kSlabTokens;
  const int warpgroup = threadIdx.x / 128;
  const int warp = threadIdx.x / 32 % 4;
  const int lane = threadIdx.x % 32;
  unsigned char* const staged = shared + Shape::kStagedAt + warpgroup * Shape::kStagedBytes;
  const std::uint32_t base = shared_address(staged);
  named_barrier_sync(1 + warpgroup, 128);  // what was staged before has been read
#pragma unroll
  for (int j = 0; j < kCount / 8; ++j) {
    const int token = j * 8 + lane % 8;
    const int chunk = warp * 2 + lane / 8 % 2;  // of 8 rows of W
    stmatrix_x2_trans(base + token * 128 + (chunk ^ token % 8) * 16, pack_pair<T>(sums[4 * j], sums[4 * j + 1]),
                      pack_pair<T>(sums[4 * j + 2], sums[4 * j + 3]));
  }
  named_barrier_sync(1 + warpgroup, 128);
  const int chunk = threadIdx.x % 8;
  const int row = (tile.row_tile * Shape::kBands + band) * kBandRows + chunk * 8;
  const int first_token = tile.token_tile * Shape::kTokens + slab * kCount;
  for (int token = threadIdx.x % 128 / 8; token < kCount; token += 16) {
    if (first_token + token >= args.m || row >= args.n) break;
    const unsigned char* from = staged + token * 128 + (chunk ^ token % 8) * 16;
    T* to = args.y + static_cast<std::int64_t>(first_token + token) * args.n + row;
    if (args.n % 8 == 0) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
      for (int i = 0; i < 8 && row + i < args.n; ++i) to[i] = reinterpret_cast<const T*>(from)[i];
    }
  }
}

// Those who share a tile add up and store it: each slab of a band is added up by one of its sharers, in whose registers
// its own part stays, and the others send it theirs. The copying warps join in the meetings: the last is for the next
// tile, which a cluster does not have.
__device__ __forceinline__ int share_meetings(int parts) { return parts == 1 ? 3 : 2; }
template <class T, class Shape>
__device__ __forceinline__ void share_and_store(const WeightOnlyWgmmaArgs<T>& args, const WgmmaTile& tile, int part,
                                                BandSums<Shape>& sums, unsigned char* shared) {
  constexpr int kFloats = Shape::kPieceFloats;
  std::uint32_t place[] = {threadIdx.x};
  pin_registers(place);  // or what follows from it is kept in registers, which the sums need, from tile to tile
  const auto warpgroup = static_cast<int>(place[0] / 128);
  const auto thread = static_cast<int>(place[0] % 128);
  const int band = warpgroup % Shape::kBands;
  const int way = warpgroup / Shape::kBands;
  const int all_parts = args.parts * Shape::kWays;
  const int own_part = part * Shape::kWays + way;
  const auto at = [&](int slab, int of_part) {
    const int slot = slab / args.parts * Shape::kBands + band;
    return shared_address(shared) + (slot * all_parts + of_part) * Shape::kPartBytes + thread * 16;
  };
  meet<false>(args.parts);  // all are done with their stages, in whose place the parts arrive
#pragma unroll
  for (int slab = 0; slab < Shape::kSlabs; ++slab) {
    const int block = slab % args.parts;
    const bool stays = block == part;
    if (stays && slab / args.parts % Shape::kWays == way) continue;
    const std::uint32_t local = at(slab, own_part);
    const std::uint32_t to = stays ? local : cluster_address(local, block);
#pragma unroll
    for (int i = 0; i < kFloats / 4; ++i) {
      const float* s = &sums[slab * kFloats + 4 * i];
      store_cluster_16b(to + i * 128 * 16, make_float4(s[0], s[1], s[2], s[3]));
    }
  }
  meet<true>(args.parts);
#pragma unroll
  for (int slab = 0; slab < Shape::kSlabs; ++slab) {
    if (slab % args.parts != part || slab / args.parts % Shape::kWays != way) continue;
    for (int p = 0; p < all_parts; ++p) {
      if (p == own_part) continue;
      const std::uint32_t from = at(slab, p);
#pragma unroll
      for (int i = 0; i < kFloats / 4; ++i) {
        const uint4 other = load_shared_16b(from + i * 128 * 16);
        float* s = &sums[slab * kFloats + 4 * i];
        s[0] += __uint_as_float(other.x);
        s[1] += __uint_as_float(other.y);
        s[2] += __uint_as_float(other.z);
        s[3] += __uint_as_float(other.w);
      }
    }
    store_piece<T, Shape>(args, &sums[slab * kFloats], tile, band, slab, shared);
  }
  if (args.parts > 1) return;
  fence_async_shared();
  meet<false>(1);  // the next tile's copies take the place of the parts
}

#endif

}  // namespace inferometer
