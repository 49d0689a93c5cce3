// The kernel of product_chain.hpp.
//
// Warps 0 to kWarps - 1 multiply, the others copy. A stage of the ring holds a group of rows of W in kStageK of k, each
// warp multiplies its part of every stage. Sums stay in registers for a group; then warps put them in shared memory and
// one of them adds them up, always in the same order.
//
// Why it ends, if all blocks run (product_chain_gpu.hpp): warps that copy wait only for those of their block that
// multiply. These wait for copies, which wait for nothing else, and for elements of the product before, which each
// block sends once it has that product's own inputs; those of the first one are there.
//
// Format (product_chain_f16.cuh, product_chain_int4.cuh) says how weights and x lie and are multiplied.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/decoder/product_chain.hpp"
#include "kernels/decoder/product_chain_exchange.cuh"
#include "kernels/matmul/product_ends.hpp"
#include "kernels/ptx/cache_policy.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace inferometer::decoder {

inline constexpr int kMostOwnRows = 64;  // of h, in a block
inline constexpr int kMostStages = 16;
inline constexpr int kMostBlocks = 256;

template <class FormatType>
struct Chain {
  using Format = FormatType;
  static constexpr int kWarps = Format::kWarps;
  static constexpr int kMathThreads = kWarps * 32;
  static constexpr int kThreads = kMathThreads + Format::kCopyWarps * 32;
  static constexpr int kLoadVecs = 2048 / kMathThreads;  // of 8 elements, at once
  static constexpr int kSquareVecs = (kMostBlocks * kChainParts / 4 + kMathThreads - 1) / kMathThreads;
  static_assert(kMostOwnRows <= kChainParts * Format::kGroupRows && kMostOwnRows <= kMathThreads);

  struct Shared {
    std::uint64_t full[kMostStages];
    std::uint64_t empty[kMostStages];
    float own[kMostOwnRows];
    float gains[2][kMostOwnRows];  // of the first norm and the second, for own rows
    float partial[2][kWarps][Format::kGroupRows];
    float squares[kWarps];
    ChainShare shares[kChainProducts];
  };
  static constexpr int bytes(const ChainShape& shape, int stages) {
    return stages * Format::kStageBytes + Format::x_bytes(chain_most_k(shape)) + static_cast<int>(sizeof(Shared));
  }

  // Results of a group.
  static constexpr INFEROMETER_HOST_DEVICE int group_outputs(bool gated) {
    return gated ? Format::kGroupRows / 2 : Format::kGroupRows;
  }
  // A product's share counts units; results are kUnit a unit, or half as many features.
  static constexpr INFEROMETER_HOST_DEVICE int unit_outputs(bool gated) {
    return gated && Format::kUnit > 1 ? Format::kUnit / 2 : Format::kUnit;
  }
  static constexpr INFEROMETER_HOST_DEVICE int groups(bool gated, const ChainShare& share) {
    const int outputs = group_outputs(gated);
    return (share.count * unit_outputs(gated) + outputs - 1) / outputs;
  }
};

#if __CUDA_ARCH__ >= 900

// The place in the ring, for both sides.
struct RingPlace {
  int slot = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void next(int stages) {
    if (++slot < stages) return;
    slot = 0;
    parity ^= 1;
  }
};

__device__ __forceinline__ int chain_products(const ChainArgs& args) {
  return args.layer.weights[kChainProducts - 1] == nullptr ? kChainProducts - 1 : kChainProducts;
}

// A copy is started by one lane after the other, some 60 cycles each: `warp` of kCopyWarps takes a part of each stage.
template <class C>
__device__ __forceinline__ void copy_weights(const ChainArgs& args, int warp, std::uint32_t ring,
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
    const int groups = C::groups(gated, share);
#pragma unroll 1
    for (int group = 0; group < groups; ++group) {
      typename Format::Copies copies(args.layer.weights[p], chain_rows(args.shape, product), k, gated, share, group,
                                     warp);
#pragma unroll 1
      for (int at = 0; at < k; at += Format::kStageK) {
        mbarrier_wait(empty + place.slot * 8, place.parity ^ 1);
        // A lane that looked late could miss the phase: where this warp has no bytes of a stage, the arrival may be all
        // that the stage waits for.
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive_expect_bytes(full + place.slot * 8, copies.bytes(k - at));
        __syncwarp();
        copies.start(ring + place.slot * Format::kStageBytes, full + place.slot * 8, k - at, policy);
        place.next(args.stages);
      }
    }
  }
}

// x = a row of f16 that other blocks send, or that is there. All of the threads that multiply.
template <class C, class Sent>
__device__ __forceinline__ void receive_row(const __half* row, int k, unsigned char* x) {
  for (int base = 0; base < k / 8; base += C::kLoadVecs * C::kMathThreads) {
    uint4 v[C::kLoadVecs];
    receive<Sent>(row, base + static_cast<int>(threadIdx.x), C::kMathThreads, k / 8, v);
#pragma unroll
    for (int i = 0; i < C::kLoadVecs; ++i) {
      if (base + i * C::kMathThreads >= k / 8) break;
      const int at = base + i * C::kMathThreads + static_cast<int>(threadIdx.x);
      C::Format::put_x(x, k, at, v[i], at < k / 8);
    }
  }
}

// Receives a norm's sums of squares and leaves one of each warp.
template <class C>
__device__ __forceinline__ void receive_squares(const float* from, float* of_warps) {
  uint4 v[C::kSquareVecs];
  receive<SentFloats>(from, static_cast<int>(threadIdx.x), C::kMathThreads,
                      static_cast<int>(gridDim.x) * kChainParts / 4, v);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < C::kSquareVecs; ++i)
    sum += (__uint_as_float(v[i].x) + __uint_as_float(v[i].y)) + (__uint_as_float(v[i].z) + __uint_as_float(v[i].w));
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
}

// What a product's results are multiplied with, and what is sent on of h.
struct ChainScales {
  float factor = 1;  // 1 / (rms(h) scale) behind a late norm
  float scale = 1;   // of h * gain, to the next one
};

// Adds up a group's sums of all warps and stores or sends its results; one warp.
template <class C>
__device__ __forceinline__ void store_group(const ChainArgs& args, ChainProduct product, const ChainShare& share,
                                            int group, const ChainScales& scales,
                                            const float (&partial)[C::kWarps][C::Format::kGroupRows],
                                            typename C::Shared& shared) {
  using Format = typename C::Format;
  const bool gated = product == ChainProduct::gate_up;
  const bool is_h = product == ChainProduct::attention_out || product == ChainProduct::down;
  const bool sends_h = is_h && static_cast<int>(product) + 1 < chain_products(args);
  const int unit = C::unit_outputs(gated);
  __half* const to = args.exchange.vector(args.shape, product);
  float squares = 0;
#pragma unroll
  for (int first = 0; first < Format::kGroupRows; first += 32) {
    const int o = first + static_cast<int>(threadIdx.x) % 32;
    const int i = group * C::group_outputs(gated) + o;
    if (o >= C::group_outputs(gated) || i >= share.count * unit) continue;
    const int row = gated ? Format::gate_row(o) : o;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < C::kWarps; ++w) sum += partial[w][row];
    const int at = share.begin * unit + i;
    if (gated) {
      float up = 0;
#pragma unroll
      for (int w = 0; w < C::kWarps; ++w) up += partial[w][row + Format::kUpRow];
      const float gate = sum * scales.factor;
      send(to + at, gate / (1 + __expf(-gate)) * (up * scales.factor));
    } else if (is_h) {
      const float h = shared.own[i] + sum;
      shared.own[i] = h;
      squares += h * h;
      if (sends_h) send(to + at, h * shared.gains[product == ChainProduct::down][i] * scales.scale);
      if (product == ChainProduct::down) args.h[at] = h;
    } else {
      args.qkv[at] = __float2half_rn(sum * scales.factor);
    }
  }
  if (!sends_h) return;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(~0U, squares, step);
  float* const parts =
      args.exchange.squares(args.shape, static_cast<int>(gridDim.x), product) + blockIdx.x * kChainParts;
  if (threadIdx.x % 32 == 0) send(parts + group, squares);
}

// The block's rows of h and what is multiplied with them, into shared memory.
template <class C>
__device__ __forceinline__ void load_own(const ChainArgs& args, typename C::Shared& shared) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i >= shared.shares[0].count * C::Format::kUnit) return;
  const int row = shared.shares[0].begin * C::Format::kUnit + i;
  shared.own[i] = __ldcg(args.h + row);
  shared.gains[0][i] = __half2float(args.layer.mlp_gain[row]);
  if (chain_products(args) == kChainProducts) shared.gains[1][i] = __half2float(args.layer.next_gain[row]);
}

template <class C>
__device__ __forceinline__ void multiply(const ChainArgs& args, std::uint32_t ring, unsigned char* x,
                                         typename C::Shared& shared) {
  using Format = typename C::Format;
  const int warp = __shfl_sync(~0U, static_cast<int>(threadIdx.x) / 32, 0);
  const int lane = threadIdx.x % 32;
  const int blocks = static_cast<int>(gridDim.x);
  const std::uint32_t full = shared_address(shared.full);
  const std::uint32_t empty = shared_address(shared.empty);
  RingPlace place;
  int turn = 0;  // of groups
  load_own<C>(args, shared);
  ChainScales scales{.factor = 1, .scale = __ldcg(args.inverse) * kLateHeadroom};
  unsend(args.used, ChainExchange::bytes(args.shape, blocks),
         static_cast<int>(blockIdx.x) * C::kMathThreads + static_cast<int>(threadIdx.x), blocks * C::kMathThreads);
  const int products = chain_products(args);
#pragma unroll 1
  for (int p = 0; p < products; ++p) {
    const auto product = static_cast<ChainProduct>(p);
    const auto behind = static_cast<ChainProduct>(p - 1);
    const bool gated = product == ChainProduct::gate_up;
    const bool has_norm = gated || product == ChainProduct::next_qkv;
    const ChainShare share = shared.shares[p];
    const int k = chain_k(args.shape, product);
    const int groups = C::groups(gated, share);
    // Nobody reads the last product's x any more: a group ends with a barrier.
    if (p == 0) {
      receive_row<C, IsThere>(args.attention, k, x);
    } else {
      receive_row<C, SentHalves>(args.exchange.vector(args.shape, behind), k, x);
    }
    if (has_norm) receive_squares<C>(args.exchange.squares(args.shape, blocks, behind), shared.squares);
    named_barrier_sync(1, C::kMathThreads);
    if (has_norm) {
      float squares = 0;
#pragma unroll
      for (int w = 0; w < C::kWarps; ++w) squares += shared.squares[w];
      const float inverse = rsqrtf(squares / static_cast<float>(args.shape.hidden) + args.eps);
      scales = {.factor = inverse / scales.scale, .scale = inverse * kLateHeadroom};
      if (product == ChainProduct::next_qkv && blockIdx.x == 0 && threadIdx.x == 0) *args.inverse = inverse;
    }
#pragma unroll 1
    for (int group = 0; group < groups; ++group) {
      typename Format::Sums sums;
      std::uint32_t x_at = shared_address(x);
      const std::uint32_t x_end = x_at + k * 2;
#pragma unroll 1
      for (int at = 0; at < k; at += Format::kStageK) {
        mbarrier_wait(full + place.slot * 8, place.parity);
        sums.multiply(ring + place.slot * Format::kStageBytes, x_at, x_end, at, k - at);
        __syncwarp();
        if (lane == 0) mbarrier_arrive(empty + place.slot * 8);
        x_at += Format::kXBytesOfStage;
        place.next(args.stages);
      }
      auto& partial = shared.partial[turn % 2];
      sums.put(partial[warp]);
      named_barrier_sync(1, C::kMathThreads);
      if (turn % C::kWarps == warp) store_group<C>(args, product, share, group, scales, partial, shared);
      ++turn;
    }
    if (warp == 0 && !has_norm && p + 1 < products && lane >= groups && lane < kChainParts)
      send(args.exchange.squares(args.shape, blocks, product) + blockIdx.x * kChainParts + lane, 0.0F);
  }
}

#endif

template <class Format>
__global__ void __launch_bounds__(Chain<Format>::kThreads, 1)
    product_chain_kernel(const __grid_constant__ ChainArgs args) {
#if __CUDA_ARCH__ >= 900
  using C = Chain<Format>;
  extern __shared__ __align__(1024) unsigned char smem[];
  unsigned char* const x = smem + args.stages * Format::kStageBytes;
  auto& shared = *reinterpret_cast<typename C::Shared*>(x + Format::x_bytes(chain_most_k(args.shape)));
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
    copy_weights<C>(args, static_cast<int>(threadIdx.x) / 32 - C::kWarps, shared_address(smem), shared);
  } else {
    multiply<C>(args, shared_address(smem), x, shared);
  }
#endif
}

}  // namespace inferometer::decoder
