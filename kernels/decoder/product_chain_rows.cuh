// The kernel of product_chain.hpp for 2 to kTokens tokens.
//
// x of so many tokens has no room in shared memory beside the ring. So a block takes k in slices, and all its rows of W
// (a set of kSetTiles tiles of them) with a slice before the next one: then each warp needs its part of a slice once,
// and loads it from the L2 into registers, a slice ahead. Sums of a set stay in registers over all of k.
//
// Tiles of 16 rows of W are A of mma.m16n8k16 (where the product is gated 8 gates, then their 8 ups), tokens are
// columns of B. Which k a lane has is free as long as A and B agree: 16 bytes at a time.
//
// Why it ends: as product_chain.cuh. Elements of a product are sent when a set of it is through, which waits for no
// other element than those of the product before.
//
// Format (product_chain_rows_f16.cuh, product_chain_rows_int4.cuh) says how weights lie and are multiplied.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/decoder/product_chain.cuh"
#include "kernels/decoder/product_chain_rows_slice.cuh"
#include "kernels/ptx/bulk_copy.cuh"

namespace inferometer::decoder {

template <class FormatType, int kMostTokens>
struct ChainRows {
  using Format = FormatType;
  static constexpr int kTokens = kMostTokens;
  static constexpr int kTokenTiles = kTokens / 8;
  static constexpr int kWarps = 8;  // that multiply
  static constexpr int kMathThreads = kWarps * 32;
  // A slice ahead, and so many sums, as registers allow. More than 168 are taken from a warpgroup that copies, though
  // one warp of it may suffice.
  static constexpr bool kAhead = kTokens * Format::kStageK <= 16 * 1024;
  static constexpr int kSetTiles = kAhead ? 14 : 7;
  static constexpr bool kTakesRegisters = kTokens * Format::kStageK >= 16 * 1024;
  static constexpr int kCopyThreads = kTakesRegisters ? 128 : Format::kCopyWarps * 32;
  static constexpr int kCopyRegisters = Format::kCopyRegisters;
  static constexpr int kMathRegisters = (3 * 168 - kCopyRegisters) / 2;
  static constexpr int kThreads = kMathThreads + kCopyThreads;
  static constexpr int kStepK = 64;  // a warp's at once
  static constexpr int kSteps = Format::kStageK / kStepK / kWarps;
  static constexpr int kTileRows = 16;
  static constexpr int kSumStride = 20;  // floats from token to token: no conflicts of banks
  static constexpr int kThreadOutputs = (kTileRows * kTokens + kMathThreads - 1) / kMathThreads;  // of a tile
  static constexpr int kBlockVecs = kTokens / 4;                                                  // sums of squares
  static constexpr int kSquareVecs = kMostBlocks * kBlockVecs / kMathThreads;
  static_assert(kMostOwnRows <= kSetTiles * kTileRows && kMathThreads % kBlockVecs == 0 && kTokens <= 32);

  struct Shared {
    std::uint64_t full[kMostStages];
    std::uint64_t empty[kMostStages];
    float partial[2][kWarps][kTokens * kSumStride];
    float own[kMostOwnRows * kTokens];  // of h, by tiles; an element is always the same thread's
    float gains[2][kMostOwnRows];       // of the first norm and the second
    float squares[kWarps][kTokens];
    float factor[kTokens];  // ChainScales of each token
    float scale[kTokens];
    ChainShare shares[kChainProducts];
  };
  static constexpr int bytes(const ChainShape&, int stages) {
    return stages * Format::kStageBytes + static_cast<int>(sizeof(Shared));
  }

  // Results of a tile; of a share, which counts units; and the first of them.
  static constexpr INFEROMETER_HOST_DEVICE int tile_outputs(bool gated) { return gated ? kTileRows / 2 : kTileRows; }
  static constexpr INFEROMETER_HOST_DEVICE int unit_outputs(bool gated) {
    return Format::kUnit == 1 ? 1 : tile_outputs(gated);
  }
  static constexpr INFEROMETER_HOST_DEVICE int tiles(bool gated, const ChainShare& share) {
    return (share.count * unit_outputs(gated) + tile_outputs(gated) - 1) / tile_outputs(gated);
  }
  // At least one, of no tiles maybe: norms are for all blocks.
  static constexpr INFEROMETER_HOST_DEVICE int sets(int tiles) {
    return tiles <= kSetTiles ? 1 : (tiles + kSetTiles - 1) / kSetTiles;
  }
};

#if __CUDA_ARCH__ >= 900

template <class C>
__device__ __forceinline__ void copy_tiles(const ChainArgs& args, int warp, std::uint32_t ring,
                                           const typename C::Shared& shared) {
  using Format = typename C::Format;
  const std::uint32_t full = shared_address(shared.full);
  const std::uint32_t empty = shared_address(shared.empty);
  const std::uint64_t policy = evict_first_policy();
  RingPlace place;
  const int products = chain_products(args);
#pragma unroll 1
  for (int p = 0; p < products; ++p) {
    const auto product = static_cast<ChainProduct>(p);
    const bool gated = product == ChainProduct::gate_up;
    const ChainShare share = shared.shares[p];
    const int k = chain_k(args.shape, product);
    const int rows = chain_rows(args.shape, product);
    const int tiles = C::tiles(gated, share);
#pragma unroll 1
    for (int first = 0; first < tiles; first += C::kSetTiles) {
      const int stages = Format::kTileStages * min(C::kSetTiles, tiles - first);
#pragma unroll 1
      for (int at = 0; at < k; at += Format::kStageK) {
#pragma unroll 1
        for (int s = 0; s < stages; ++s) {
          const RowsCopy copy = Format::copy(args.layer.weights[p], rows, k, gated, share,
                                             first + s / Format::kTileStages, s % Format::kTileStages, at, warp);
          mbarrier_wait(empty + place.slot * 8, place.parity ^ 1);
          __syncwarp();  // as in copy_weights
          if (threadIdx.x % 32 == 0) mbarrier_arrive_expect_bytes(full + place.slot * 8, copy.of_warp);
          __syncwarp();
          if (copy.bytes > 0)
            bulk_load(ring + place.slot * Format::kStageBytes + copy.target, copy.source, copy.bytes,
                      full + place.slot * 8, policy);
          place.next(args.stages);
        }
      }
    }
  }
}

template <class C>
using RowsSums = float[C::kSetTiles][C::kTokenTiles][4];

// A set of tiles over all of k.
template <class C>
__device__ __forceinline__ void multiply_set(const ChainArgs& args, const __half* x, bool plain, int k, int tiles,
                                             std::uint32_t ring, const typename C::Shared& shared, RingPlace& place,
                                             RowsSums<C>& sums) {
  using Format = typename C::Format;
  const std::uint32_t full = shared_address(shared.full);
  const std::uint32_t empty = shared_address(shared.empty);
#pragma unroll
  for (auto& tile : sums)
#pragma unroll
    for (auto& tokens : tile)
#pragma unroll
      for (float& sum : tokens) sum = 0;
  if (tiles == 0) return;
  RowsSlice<C> slice;
  if (C::kAhead) slice.ask(x, plain, args.tokens, k, 0);
#pragma unroll 1
  for (int at = 0; at < k; at += Format::kStageK) {
    if (!C::kAhead) slice.ask(x, plain, args.tokens, k, at);
    if (!plain) slice.await(x, args.tokens, k, at, args.probe);
    RowsSlice<C> next;
    if (C::kAhead) next.ask(x, plain, args.tokens, k, at + Format::kStageK);  // nothing exists behind k
    const typename Format::template Multiply<C> multiply(slice, k - at);
#pragma unroll
    for (int tile = 0; tile < C::kSetTiles; ++tile) {
      if (tile >= tiles) break;
      const RingPlace upper = place;
      place.next(args.stages);
      mbarrier_wait(full + upper.slot * 8, upper.parity);
      RingPlace lower = upper;
      if (Format::kTileStages == 2) {
        lower = place;
        place.next(args.stages);
        mbarrier_wait(full + lower.slot * 8, lower.parity);
      }
      multiply.tile(sums[tile], ring + upper.slot * Format::kStageBytes, ring + lower.slot * Format::kStageBytes);
      __syncwarp();
      if (threadIdx.x % 32 == 0) {
        mbarrier_arrive(empty + upper.slot * 8);
        if (Format::kTileStages == 2) mbarrier_arrive(empty + lower.slot * 8);
      }
    }
    if (C::kAhead) slice = next;
  }
}

// The norm behind `behind`: waits for all blocks' sums of squares, in one order.
template <class C>
__device__ __forceinline__ void receive_norm(const ChainArgs& args, ChainProduct behind, typename C::Shared& shared) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  uint4 v[C::kSquareVecs];
  receive<SentFloats>(args.exchange.squares(args.shape, static_cast<int>(gridDim.x), behind, C::kTokens, C::kTokens),
                      static_cast<int>(threadIdx.x), C::kMathThreads, static_cast<int>(gridDim.x) * C::kBlockVecs, v);
  float sums[4] = {};
#pragma unroll
  for (const uint4& four : v) {
    sums[0] += __uint_as_float(four.x);
    sums[1] += __uint_as_float(four.y);
    sums[2] += __uint_as_float(four.z);
    sums[3] += __uint_as_float(four.w);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int step = 16; step >= C::kBlockVecs; step /= 2) sums[i] += __shfl_xor_sync(~0U, sums[i], step);
    if (lane < C::kBlockVecs) shared.squares[warp][lane * 4 + i] = sums[i];
  }
  named_barrier_sync(1, C::kMathThreads);
  if (const int token = static_cast<int>(threadIdx.x); token < C::kTokens) {
    float squares = 0;
#pragma unroll
    for (int w = 0; w < C::kWarps; ++w) squares += shared.squares[w][token];
    const float inverse = rsqrtf(squares / static_cast<float>(args.shape.hidden) + args.eps);
    shared.factor[token] = inverse / shared.scale[token];
    shared.scale[token] = inverse * kLateHeadroom;
    if (behind == ChainProduct::down && blockIdx.x == 0 && token < args.tokens) args.inverse[token] = inverse;
  }
  named_barrier_sync(1, C::kMathThreads);
}

// Adds up a tile's sums of all warps and stores or sends its results; all warps, an element a thread.
template <class C>
__device__ __forceinline__ void store_tile(const ChainArgs& args, ChainProduct product, const ChainShare& share,
                                           int tile, const float (&partial)[C::kWarps][C::kTokens * C::kSumStride],
                                           typename C::Shared& shared, float (&squares)[C::kThreadOutputs]) {
  const bool gated = product == ChainProduct::gate_up;
  const bool is_h = product == ChainProduct::attention_out || product == ChainProduct::down;
  const bool sends_h = is_h && static_cast<int>(product) + 1 < chain_products(args);
  const int outputs = C::tile_outputs(gated);
  const int unit = C::unit_outputs(gated);
  __half* const to = args.exchange.vector(args.shape, product, C::kTokens);
#pragma unroll
  for (int n = 0; n < C::kThreadOutputs; ++n) {
    const int i = n * C::kMathThreads + static_cast<int>(threadIdx.x);
    const int token = i / outputs;
    const int row = i % outputs;
    const int index = tile * outputs + row;
    if (token >= args.tokens || index >= share.count * unit) continue;
    const int at = share.begin * unit + index;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < C::kWarps; ++w) sum += partial[w][token * C::kSumStride + row];
    if (gated) {
      float up = 0;
#pragma unroll
      for (int w = 0; w < C::kWarps; ++w) up += partial[w][token * C::kSumStride + C::kTileRows / 2 + row];
      const float gate = sum * shared.factor[token];
      send(to + token * args.shape.intermediate + C::Format::sent_at(at),
           gate / (1 + __expf(-gate)) * (up * shared.factor[token]));
    } else if (is_h) {
      float& own = shared.own[tile * C::kTileRows * C::kTokens + i];
      const float h = own + sum;
      own = h;
      squares[n] += h * h;
      if (sends_h)
        send(to + token * args.shape.hidden + C::Format::sent_at(at),
             h * shared.gains[product == ChainProduct::down][index] * shared.scale[token]);
      if (product == ChainProduct::down) args.h[token * args.shape.hidden + at] = h;
    } else {
      args.qkv[token * args.shape.qkv_rows + at] = __float2half_rn(sum * shared.factor[token]);
    }
  }
}

// A block's sum of squares of each token, also of those that do not exist. Also from blocks without rows.
template <class C>
__device__ __forceinline__ void send_squares(const ChainArgs& args, ChainProduct product,
                                             const float (&squares)[C::kThreadOutputs]) {
  float* const to = args.exchange.squares(args.shape, static_cast<int>(gridDim.x), product, C::kTokens, C::kTokens) +
                    blockIdx.x * C::kTokens;
#pragma unroll
  for (int n = 0; n < C::kThreadOutputs; ++n) {
    const int i = n * C::kMathThreads + static_cast<int>(threadIdx.x);
    float sum = squares[n];
#pragma unroll
    for (int step = C::kTileRows / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
    if (i % C::kTileRows == 0 && i / C::kTileRows < C::kTokens) send(to + i / C::kTileRows, sum);
  }
}

// The block's rows of h, each element by the thread that adds to it, and what they are multiplied with.
template <class C>
__device__ __forceinline__ void load_own_rows(const ChainArgs& args, typename C::Shared& shared) {
  const ChainShare share = shared.shares[0];
  const int begin = share.begin * C::Format::kUnit;
  const int rows = share.count * C::Format::kUnit;
  const auto thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int tile = 0; tile < C::tiles(false, share); ++tile)
#pragma unroll
    for (int n = 0; n < C::kThreadOutputs; ++n) {
      const int i = n * C::kMathThreads + thread;
      const int index = tile * C::kTileRows + i % C::kTileRows;
      const int token = i / C::kTileRows;
      if (token < args.tokens && index < rows)
        shared.own[tile * C::kTileRows * C::kTokens + i] = __ldcg(args.h + token * args.shape.hidden + begin + index);
    }
  if (thread < rows) {
    shared.gains[0][thread] = __half2float(args.layer.mlp_gain[begin + thread]);
    if (chain_products(args) == kChainProducts)
      shared.gains[1][thread] = __half2float(args.layer.next_gain[begin + thread]);
  }
  if (thread < C::kTokens) {
    shared.factor[thread] = 1;
    shared.scale[thread] = thread < args.tokens ? __ldcg(args.inverse + thread) * kLateHeadroom : 1;
  }
}

template <class C>
__device__ __forceinline__ void multiply_rows(const ChainArgs& args, std::uint32_t ring, typename C::Shared& shared) {
  const int warp = __shfl_sync(~0U, static_cast<int>(threadIdx.x) / 32, 0);
  const int g = threadIdx.x % 32 / 4;
  const int t = threadIdx.x % 4;
  RingPlace place;
  int turn = 0;  // of tiles
  load_own_rows<C>(args, shared);
  unsend(args.used, args.used_bytes, static_cast<int>(blockIdx.x * C::kMathThreads + threadIdx.x),
         static_cast<int>(gridDim.x) * C::kMathThreads);
  const int products = chain_products(args);
#pragma unroll 1
  for (int p = 0; p < products; ++p) {
    const auto product = static_cast<ChainProduct>(p);
    const auto behind = static_cast<ChainProduct>(p - 1);
    const bool gated = product == ChainProduct::gate_up;
    const bool has_norm = gated || product == ChainProduct::next_qkv;
    const ChainShare share = shared.shares[p];
    const int k = chain_k(args.shape, product);
    const int tiles = C::tiles(gated, share);
    const __half* const x = p == 0 ? args.attention : args.exchange.vector(args.shape, behind, C::kTokens);
    float squares[C::kThreadOutputs] = {};
#pragma unroll 1
    for (int set = 0; set < C::sets(tiles); ++set) {
      const int first = set * C::kSetTiles;
      RowsSums<C> sums;
      multiply_set<C>(args, x, p == 0, k, min(C::kSetTiles, tiles - first), ring, shared, place, sums);
      if (has_norm && set == 0) receive_norm<C>(args, behind, shared);
#pragma unroll 1
      for (int tile = 0; tile < C::kSetTiles && first + tile < tiles; ++tile) {
        // Whoever still reads this buffer's last tile has not come to the barrier of the tile between them.
        auto& partial = shared.partial[turn % 2];
        float* const lane = partial[warp] + 2 * t * C::kSumStride + g;
#pragma unroll
        for (int of_set = 0; of_set < C::kSetTiles; ++of_set) {  // registers have no index
          if (of_set != tile) continue;
#pragma unroll
          for (int tokens = 0; tokens < C::kTokenTiles; ++tokens) {
            const float(&d)[4] = sums[of_set][tokens];
            float* const to = lane + tokens * 8 * C::kSumStride;
            to[0] = d[0];
            to[C::kSumStride] = d[1];
            to[C::kTileRows / 2] = d[2] * C::Format::kLowerScale;
            to[C::kTileRows / 2 + C::kSumStride] = d[3] * C::Format::kLowerScale;
          }
        }
        named_barrier_sync(1, C::kMathThreads);
        store_tile<C>(args, product, share, first + tile, partial, shared, squares);
        ++turn;
      }
    }
    if (!has_norm && p + 1 < products) send_squares<C>(args, product, squares);
  }
}

#endif

template <class Format, int kTokens>
__global__ void __launch_bounds__(ChainRows<Format, kTokens>::kThreads, 1)
    product_chain_rows_kernel(const __grid_constant__ ChainArgs args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using C = ChainRows<Format, kTokens>;
  extern __shared__ __align__(1024) unsigned char smem[];
  auto& shared = *reinterpret_cast<typename C::Shared*>(smem + args.stages * Format::kStageBytes);
  if (threadIdx.x == C::kMathThreads) {
    for (int s = 0; s < args.stages; ++s) {
      mbarrier_init(shared_address(&shared.full[s]), Format::kCopyWarps);
      mbarrier_init(shared_address(&shared.empty[s]), C::kWarps);
    }
    mbarrier_init_fence();
  }
  if (threadIdx.x < kChainProducts)
    shared.shares[threadIdx.x] =
        chain_share(args.shape, static_cast<ChainProduct>(threadIdx.x), Format::kUnit, gridDim.x, blockIdx.x);
  __syncthreads();
  if (threadIdx.x >= C::kMathThreads) {
    if constexpr (C::kTakesRegisters) keep_registers<C::kCopyRegisters>();
    const int warp = static_cast<int>(threadIdx.x) / 32 - C::kWarps;
    if (warp < Format::kCopyWarps) copy_tiles<C>(args, warp, shared_address(smem), shared);
  } else {
    if constexpr (C::kTakesRegisters) take_registers<C::kMathRegisters>();
    multiply_rows<C>(args, shared_address(smem), shared);
  }
#endif
}

}  // namespace inferometer::decoder
