// Y = X W^T for at most 16 tokens and packed weights of 8 or 4 bits (packing.hpp), bound by reading W once.
//
//   in   x  [m, k]  w  [n, k] packed, scales, zero points     f16 or bf16 around the codes
//   out  y  [m, n]                                            accumulated in f32, rounded once
//        or how product_ends.hpp says
//
// Rows of W are the M side of mma m16n8k16 and tokens its N side, so that eight tokens fill a product that sixteen
// would be padded to. A block takes a few tiles of 16 rows and all of k, or, where that leaves SMs idle, a part of it;
// its warps take slices of k in turn. Each feeds itself by the copy engine through a ring of its own, so that the loop
// holds no block barrier and few instructions that are not arithmetic: with cp.async, whose addresses every lane
// computes, those were the limit. Sums of a group are scaled in f32. Warps are added in their order, and so are the
// blocks of a cluster that share rows: the result is the same bit for bit.
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_args.hpp"
#include "kernels/matmul/weight_only_few_tokens_ends.cuh"
#include "kernels/matmul/weight_only_few_tokens_ring.cuh"
#include "kernels/matmul/weight_only_few_tokens_shape.hpp"
#include "kernels/matmul/weight_only_fragment.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace inferometer {

#if __CUDA_ARCH__ >= 900

template <class T, int kBitCount, bool kPlain, int kTokenTileCount, int kMostTiles, class HowItEnds>
struct FewTokens {
  using End = HowItEnds;
  using Codes = CodeForm<T, kBitCount>;
  using Form = TileForm<kBitCount, kPlain>;
  static constexpr FewTokensShape kShape = {.token_tiles = kTokenTileCount};
  static constexpr int kBits = kBitCount;
  static constexpr int kThreads = FewTokensShape::kThreads;
  static constexpr int kWarps = FewTokensShape::kWarps;
  static constexpr int kMaxTiles = kMostTiles;
  static constexpr int kTokenTiles = kTokenTileCount;
  static constexpr int kTokens = kShape.tokens();
  static constexpr int kXBytes = kShape.x_bytes();
  // Tiles of rows that are multiplied at once, so that products need not wait for each other: two while the sums leave
  // registers for it.
  static constexpr int kAtOnce = kTokenTiles * kMaxTiles <= 8 ? 2 : 1;
  static_assert(kTokens <= kWarps && kMaxTiles * kTileRows / 4 <= 32, "one quad a thread: finish_block");
};

// A warp's sums: for each tile of rows and of tokens an accumulator of m16n8k16. Those of rows g + 8 are
// Codes::kHighStep times too large.
template <class Shape>
using FewTokensSums = float[Shape::kMaxTiles][Shape::kTokenTiles][4];

// A lane's part of a slice of X, and the sums of each token's x in the halves of the slice, which take the offset
// of the codes and the zero points out of the products again: sum (c + u) x - (c + z) sum x = sum (u - z) x.
template <class Shape>
struct SliceOfX {
  std::uint32_t fragments[Shape::kTokenTiles][8];
  float halves[2][Shape::kTokenTiles][2];
};

// What the accumulator of a tile starts from.
template <class Shape>
__device__ __forceinline__ void set_correction(float (&part)[Shape::kTokenTiles][4],
                                               const float (&sum)[Shape::kTokenTiles][2], float low_zero,
                                               float high_zero) {
  using Codes = typename Shape::Codes;
  const float low = -(Codes::kOffset + low_zero);
  const float high = -(Codes::kOffset + Codes::kHighStep * high_zero);
#pragma unroll
  for (int t = 0; t < Shape::kTokenTiles; ++t)
#pragma unroll
    for (int i = 0; i < 4; ++i) part[t][i] = (i < 2 ? low : high) * sum[t][i % 2];
}

// Tiles are multiplied in twos where Shape::kAtOnce is 2. Where a block has an odd number of them, its first one stands
// in a pair with itself: sums number 0 are its own once more, not stored, and those of tile r are number r + 1.
template <class Shape>
__device__ __forceinline__ int tiles_twice(int tiles) {
  return tiles % Shape::kAtOnce;
}

// The lane's own places in the tile of a slice that sums number 0 are of: shared addresses. Where that is the first
// tile once more, `skipped` is what lies between, a tile's bytes, else 0.
struct TilePlaces {
  std::uint32_t codes;
  std::uint32_t scales;
  std::uint32_t zeros;
  int skipped;
};

// sums += W[tile, slice] X[:, slice]^T for kCount tiles at once, so that one's products run under the other's codes.
template <class T, class Shape, int kCount>
__device__ __forceinline__ void accumulate_tiles(const typename Shape::Form& form, const TilePlaces& places,
                                                 const SliceOfX<Shape>& x, FewTokensSums<Shape>& sums, int first) {
  using Codes = typename Shape::Codes;
  using Form = typename Shape::Form;
  constexpr int kSteps = kSliceK / kStepK;
  const auto place_of = [&](int c) { return (first + c) * form.tile_bytes() + (first + c == 0 ? places.skipped : 0); };
  std::uint32_t words[kCount][Shape::kBits];
#pragma unroll
  for (int c = 0; c < kCount; ++c) load_codes<Shape::kBits>(places.codes + place_of(c), words[c]);

  // `kStepCount` steps from `kFirst` on, of the slice's group number `group`, whose x add up to `sum_x`.
  const auto steps = [&]<int kFirst, int kStepCount>(int group, const float(&sum_x)[Shape::kTokenTiles][2]) {
    float part[kCount][Shape::kTokenTiles][4];
    float scales[kCount][2];
#pragma unroll
    for (int c = 0; c < kCount; ++c) {
      const std::uint32_t at = places.scales + place_of(c) + group * Form::kGroupBytes;
      scales[c][0] = to_float(half_of<T>(load_shared_2b(at)));
      scales[c][1] = to_float(half_of<T>(load_shared_2b(at + 8 * sizeof(T))));
      float low_zero = Codes::kMiddle;
      float high_zero = Codes::kMiddle;
      if (!form.symmetric()) {
        const std::uint32_t zeros = places.zeros + place_of(c) + group * kTileRows;
        low_zero = static_cast<float>(load_shared_1b(zeros));
        high_zero = static_cast<float>(load_shared_1b(zeros + 8));
      }
      set_correction<Shape>(part[c], sum_x, low_zero, high_zero);
    }
#pragma unroll
    for (int step = kFirst; step < kFirst + kStepCount; ++step)
#pragma unroll
      for (int c = 0; c < kCount; ++c) {
        std::uint32_t a[4];
        Codes::raw(&words[c][step * Codes::kStepWords], a);
#pragma unroll
        for (int t = 0; t < Shape::kTokenTiles; ++t)
          mma_m16n8k16<T>(part[c][t], a, x.fragments[t][2 * step], x.fragments[t][2 * step + 1]);
      }
#pragma unroll
    for (int c = 0; c < kCount; ++c)
#pragma unroll
      for (int t = 0; t < Shape::kTokenTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[first + c][t][i] += scales[c][i / 2] * part[c][t][i];
  };
  if (!form.two_groups()) {
    float whole[Shape::kTokenTiles][2];
#pragma unroll
    for (int t = 0; t < Shape::kTokenTiles; ++t)
#pragma unroll
      for (int i = 0; i < 2; ++i) whole[t][i] = x.halves[0][t][i] + x.halves[1][t][i];
    steps.template operator()<0, kSteps>(0, whole);
  } else {
    steps.template operator()<0, kSteps / 2>(0, x.halves[0]);
    steps.template operator()<kSteps / 2, kSteps / 2>(1, x.halves[1]);
  }
}

// Where a lane finds its part of a slice of X, from the start of the panel: the first half of the slice, the second.
struct PlacesInX {
  std::uint32_t halves[2];

  // The copy engine swizzles: 16 bytes number c of a token's 128 lie at c ^ token % 8.
  __device__ PlacesInX() {
    const std::uint32_t lane = threadIdx.x % 32;
    halves[0] = lane % 8 * 128 + (lane / 8 ^ lane % 8) * 16;
    halves[1] = halves[0] ^ 4 * 16;
    pin_registers(halves);
  }
};

// Loads a slice of X, and adds it up: products with a fragment of ones.
template <class T, class Shape>
__device__ __forceinline__ void load_x(std::uint32_t panel, const PlacesInX& places, SliceOfX<Shape>& x) {
  const std::uint32_t one = pack_pair<T>(1.0F, 1.0F);
  const std::uint32_t ones[4] = {one, one, one, one};
#pragma unroll
  for (int t = 0; t < Shape::kTokenTiles; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t tiles[4];
      ldmatrix_x4(tiles, panel + t * 8 * 128 + places.halves[half]);
#pragma unroll
      for (int i = 0; i < 4; ++i) x.fragments[t][half * 4 + i] = tiles[i];
      float sums[4] = {};
      mma_m16n8k16<T>(sums, ones, tiles[0], tiles[1]);
      mma_m16n8k16<T>(sums, ones, tiles[2], tiles[3]);
      x.halves[half][t][0] = sums[0];
      x.halves[half][t][1] = sums[1];
    }
}

// `first_slice`: the warp's. `meanwhile` is called while the first slices are under way.
template <class T, class Shape>
__device__ __forceinline__ void accumulate_warp(const FewTokensArgs<T>& args, const CUtensorMap* x_map, int warp,
                                                int first_tile, int first_slice, int end_slice, unsigned char* shared,
                                                FewTokensSums<Shape>& sums, const auto& meanwhile) {
  const int lane = threadIdx.x % 32;
  const typename Shape::Form form(args.weights.shape);
  FewTokensRing<T, Shape> ring(args, x_map, first_tile, first_slice, end_slice, form.tile_bytes(), warp, shared);
  meanwhile();
  const PlacesInX places_in_x;
  const int twice = tiles_twice<Shape>(args.tiles);
  const int skipped = twice * form.tile_bytes();
  const std::uint32_t codes_at = lane * 16 - skipped;
  const std::uint32_t scales_at = Shape::Form::kScalesAt + lane / 4 * sizeof(T) - skipped;
  const std::uint32_t zeros_at = form.zeros_at() + lane / 4 - skipped;
  for (int slice = first_slice; slice < end_slice; slice += Shape::kWarps) {
    ring.wait();
    SliceOfX<Shape> x;
    load_x<T, Shape>(ring.x(), places_in_x, x);
    const std::uint32_t weights = ring.weights();
    const TilePlaces places = {
        .codes = weights + codes_at, .scales = weights + scales_at, .zeros = weights + zeros_at, .skipped = skipped};
#pragma unroll
    for (int r = 0; r < Shape::kMaxTiles; r += Shape::kAtOnce) {
      if (r >= args.tiles + twice) break;
      accumulate_tiles<T, Shape, Shape::kAtOnce>(form, places, x, sums, r);
    }
    ring.next();
  }
}

// Adds up the warps, then the blocks of the cluster, and stores Y. `shared` is free on entry. Each thread has one quad:
// that of token `warp`, rows 4 lane .. 4 lane + 3.
template <class T, class Shape>
__device__ __forceinline__ void finish_block(const FewTokensArgs<T>& args, int first_tile, int part,
                                             const FewTokensSums<Shape>& sums, unsigned char* shared,
                                             const FewTokensEnd<T, Shape, typename Shape::End>& end) {
  constexpr FewTokensShape kShape = Shape::kShape;
  constexpr bool kTogether = FewTokensEnd<T, Shape, typename Shape::End>::kTogether;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int stride = kShape.merge_stride(args.tiles);
  const int twice = tiles_twice<Shape>(args.tiles);
  auto* const of_warps = reinterpret_cast<float*>(shared);  // [warps, tokens, stride]
#pragma unroll
  for (int r = 0; r < Shape::kMaxTiles; ++r) {
    if (r >= args.tiles + twice) break;
    if (r < twice) continue;
#pragma unroll
    for (int t = 0; t < Shape::kTokenTiles; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        of_warps[(warp * Shape::kTokens + t * 8 + lane % 4 * 2 + i % 2) * stride + (r - twice) * kTileRows + lane / 4 +
                 i / 2 * 8] = i < 2 ? sums[r][t][i] : sums[r][t][i] * (1.0F / Shape::Codes::kHighStep);
  }
  __syncthreads();

  const bool has_quad = warp < args.m && lane * 4 < args.tiles * kTileRows;
  const int row = first_tile * kTileRows + lane * 4;
  float4 sum = {0, 0, 0, 0};
  if (has_quad) {
#pragma unroll
    for (int w = 0; w < Shape::kWarps; ++w)
      add_quad(sum, *reinterpret_cast<const float4*>(of_warps + (w * Shape::kTokens + warp) * stride + lane * 4));
    if (!kTogether && args.parts == 1) end.store(args, warp, row, sum, true);
  }
  if (kTogether && args.parts == 1) end.store(args, warp, row, sum, has_quad);
  if (args.parts == 1) return;
  // Every block sends each quad to the block that stores it.
  unsigned char* const inbox = shared + kShape.merge_bytes(args.tiles);  // [parts, tokens, quads]
  const int owner = lane % args.parts;
  cluster_wait();  // every block is done with its rings
  if (has_quad)
    store_cluster_16b(cluster_address(shared_address(inbox) + (part * Shape::kThreads + threadIdx.x) * 16, owner), sum);
  cluster_arrive();
  cluster_wait();
  const bool stores = has_quad && owner == part;
  if (!kTogether && !stores) return;
  sum = {0, 0, 0, 0};
  if (!kTogether || stores)
    for (int p = 0; p < args.parts; ++p)
      add_quad(sum, reinterpret_cast<const float4*>(inbox)[p * Shape::kThreads + threadIdx.x]);
  end.store(args, warp, row, sum, !kTogether || stores);
}

#endif

// The blocks of a cluster share rows.
template <class T, int kBits, bool kPlain, int kTokenTiles, int kMaxTiles, class End = RoundedEnd>
__global__ void __launch_bounds__(FewTokensShape::kThreads, 1)
    few_tokens_kernel(const __grid_constant__ FewTokensArgs<T> args, const __grid_constant__ CUtensorMap x,
                      const __grid_constant__ End how) {
#if __CUDA_ARCH__ >= 900
  using Shape = FewTokens<T, kBits, kPlain, kTokenTiles, kMaxTiles, End>;
  extern __shared__ __align__(1024) unsigned char smem[];
  if (threadIdx.x == 0 && !args.x_is_row) tma_prefetch_map(&x);
  const int warp = __shfl_sync(~0U, static_cast<int>(threadIdx.x) / 32, 0);  // the compiler learns that all lanes agree
  const auto part = static_cast<int>(cluster_rank());
  const int first_tile = static_cast<int>(cluster_id()) * args.tiles;
  const int begin = part * args.part_slices + min(part, args.long_parts);
  const int end = begin + args.part_slices + (part < args.long_parts ? 1 : 0);

  FewTokensEnd<T, Shape, End> ending(how);
  FewTokensSums<Shape> sums = {};
  accumulate_warp<T, Shape>(args, &x, warp, first_tile, begin + warp, end, smem, sums,
                            [&] { ending.expect(args, warp, first_tile, part); });
  __syncthreads();                               // all warps are done with their rings, which the sums overwrite
  if (args.parts > 1) cluster_arrive_relaxed();  // and so may what other blocks send
  finish_block<T, Shape>(args, first_tile, part, sums, smem, ending);
#endif
}

}  // namespace inferometer
