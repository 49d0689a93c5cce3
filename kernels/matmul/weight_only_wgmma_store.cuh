// The end of a tile of weight_only_wgmma_kernel: who shares it adds up, and Y is rounded and stored.
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/common/swiglu.cuh"
#include "kernels/matmul/weight_only_wgmma_multiply.cuh"
#include "kernels/matmul/weight_only_wgmma_shape.hpp"
#include "kernels/matmul/weight_only_wgmma_slices.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/stmatrix.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Rounds the sums of a slab of the tile's tokens in one band and stores them. They go through shared memory to leave
// in rows of 128 bytes. The warpgroup calls.
template <class T, class Shape>
__device__ __forceinline__ void store_plain_piece(const WeightOnlyWgmmaArgs<T>& args, const float* sums,
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

// The same for a gated product (product_ends.hpp): rows of 64 bytes.
template <class T, class Shape>
__device__ __forceinline__ void store_gated_piece(const WeightOnlyWgmmaArgs<T>& args, const float* sums,
                                                  const WgmmaTile& tile, int band, int slab, unsigned char* shared) {
  constexpr int kCount = Shape::kSlabTokens;
  constexpr int kRowBytes = 64;
  std::uint32_t place[] = {threadIdx.x};
  pin_registers(place);  // or what follows from it is kept in registers, which the sums need, from tile to tile
  const int warpgroup = place[0] / 128;
  const int lane = place[0] % 32;
  unsigned char* const staged = shared + Shape::kStagedAt + warpgroup * Shape::kStagedBytes;
  const std::uint32_t base = shared_address(staged);
  named_barrier_sync(1 + warpgroup, 128);  // what was staged before has been read
#pragma unroll
  for (int j = 0; j < kCount / 8; ++j) {
    const int token = j * 8 + lane % 8;
    const int chunk = place[0] / 32 % 4;  // of 8 features, which a warp's 16 rows of W make
    stmatrix_x1_trans(base + token * kRowBytes + (chunk ^ token / 2 % 4) * 16,
                      swiglu_pair({sums[4 * j], sums[4 * j + 1]}, {sums[4 * j + 2], sums[4 * j + 3]}));
  }
  named_barrier_sync(1 + warpgroup, 128);
  const int chunk = place[0] % 4;
  const int features = args.n / 2;  // a multiple of 8
  const int feature = (tile.row_tile * Shape::kBands + band) * kBandRows / 2 + chunk * 8;
  const int first_token = tile.token_tile * Shape::kTokens + slab * kCount;
  for (int token = place[0] % 128 / 4; token < kCount; token += 32) {
    if (first_token + token >= args.m || feature >= features) break;
    *reinterpret_cast<uint4*>(args.y + static_cast<std::int64_t>(first_token + token) * features + feature) =
        *reinterpret_cast<const uint4*>(staged + token * kRowBytes + (chunk ^ token / 2 % 4) * 16);
  }
}

template <class T, class Shape>
__device__ __forceinline__ void store_piece(const WeightOnlyWgmmaArgs<T>& args, const float* sums,
                                            const WgmmaTile& tile, int band, int slab, unsigned char* shared) {
  if constexpr (Shape::kGated) {
    store_gated_piece<T, Shape>(args, sums, tile, band, slab, shared);
  } else {
    store_plain_piece<T, Shape>(args, sums, tile, band, slab, shared);
  }
}

inline constexpr int kShareBarrier = 6;  // a named one, of all who multiply

// Those who share tile number `index` add up and store it. First the warpgroups of a block: each slab of a band is
// added up by one of them, in whose registers its own part stays, and the others leave it theirs. Then the blocks of a
// cluster, of whose sums so few bytes are left: an SM sends some 25 bytes a ns. What is left and sent arrives in place
// of the stages.
template <class T, class Shape>
__device__ __forceinline__ void share_and_store(const WeightOnlyWgmmaArgs<T>& args, int index, BandSums<Shape>& sums,
                                                unsigned char* shared) {
  constexpr int kFloats = Shape::kPieceFloats;
  constexpr int kWays = Shape::kWays;
  std::uint32_t place[] = {threadIdx.x, static_cast<std::uint32_t>(index)};
  pin_registers(place);  // or what follows from it is kept in registers, which the sums need, from tile to tile
  const auto warpgroup = static_cast<int>(place[0] / 128);
  const int part = block_part(args);
  const int band = warpgroup % Shape::kBands;
  const int way = warpgroup / Shape::kBands;
  const std::uint32_t own_place = shared_address(shared) + place[0] % 128 * 16;
  // Where one of `sharers`, a power of two, leaves what another, `owner`, adds up; `piece`: of the owner's.
  const auto slot = [&](int piece, int from, int owner, int sharers) {
    return (piece * Shape::kBands + band) * (sharers - 1) + ((from - owner - 1) & (sharers - 1));
  };
  const auto left_at = [&](int slab, int from) {
    return own_place + slot(slab, from, slab % kWays, kWays) * Shape::kPartBytes;
  };
  const auto sent_at = [&](int slab, int from) {
    const int piece = slab >> args.parts_log2;
    return own_place + Shape::kSentAt + slot(piece, from, slab & (args.parts - 1), args.parts) * Shape::kPartBytes;
  };
  const auto send = [&](int slab, std::uint32_t to) {
#pragma unroll
    for (int i = 0; i < kFloats / 4; ++i) {
      const float* s = &sums[slab * kFloats + 4 * i];
      store_cluster_16b(to + i * 128 * 16, make_float4(s[0], s[1], s[2], s[3]));
    }
  };
  const auto add = [&](int slab, std::uint32_t from) {
#pragma unroll
    for (int i = 0; i < kFloats / 4; ++i) {
      const float4 other = load_shared_four_floats(from + i * 128 * 16);
      float* s = &sums[slab * kFloats + 4 * i];
      s[0] += other.x;
      s[1] += other.y;
      s[2] += other.z;
      s[3] += other.w;
    }
  };

  if (args.parts > 1) cluster_arrive_relaxed();  // this thread is done with its block's stages
  if constexpr (kWays > 1) {
    named_barrier_sync(kShareBarrier, Shape::kConsumers * 128);  // and so are all of this block
#pragma unroll
    for (int slab = 0; slab < Shape::kSlabs; ++slab)
      if (slab % kWays != way) send(slab, left_at(slab, way));
    named_barrier_sync(kShareBarrier, Shape::kConsumers * 128);
#pragma unroll
    for (int slab = 0; slab < Shape::kSlabs; ++slab) {
      if (slab % kWays != way) continue;
#pragma unroll 1
      for (int w = 0; w < kWays; ++w)
        if (w != slab % kWays) add(slab, left_at(slab, w));
    }
  }
  if (args.parts > 1) {
    cluster_wait();
#pragma unroll
    for (int slab = 0; slab < Shape::kSlabs; ++slab) {
      const int owner = slab & (args.parts - 1);
      if (slab % kWays == way && owner != part) send(slab, cluster_address(sent_at(slab, part), owner));
    }
    cluster_arrive();
    cluster_wait();
  }
  pin_registers(place);
  const WgmmaTile tile(args, static_cast<int>(place[1]));
#pragma unroll
  for (int slab = 0; slab < Shape::kSlabs; ++slab) {
    if (slab % kWays != way || (slab & (args.parts - 1)) != part) continue;
    for (int p = 0; p < args.parts; ++p)
      if (p != part) add(slab, sent_at(slab, p));
    store_piece<T, Shape>(args, &sums[slab * kFloats], tile, band, slab, shared);
  }
  if (args.parts > 1) return;
  fence_async_shared();
  __syncthreads();  // the copying warps go on to the next tile, in place of what was left
}

// The copying warps' part in it.
__device__ __forceinline__ void wait_for_sharers(int parts) {
  if (parts == 1) {
    __syncthreads();
    return;
  }
  for (int meeting = 0; meeting < 2; ++meeting) {
    cluster_arrive_relaxed();
    cluster_wait();
  }
}

#endif

}  // namespace inferometer
