// The end of an item of wide_chain.cuh: ways and parts add up, always in one order, and results are stored.
//
// Sums of 8 tokens of a band, a slab, are a vector of four in each thread: rows g and g + 8 of its warp's 16, tokens
// 2 t and 2 t + 1 (g = lane / 4, t = lane % 4). A slab is one way's of a block, and one part's of them all.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/common/swiglu.cuh"
#include "kernels/decoder/product_chain_exchange.cuh"
#include "kernels/decoder/wide_chain.hpp"
#include "kernels/decoder/wide_chain_formats.cuh"
#include "kernels/matmul/product_ends.hpp"
#include "kernels/ptx/global_order.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace inferometer::decoder {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

inline constexpr int kWideMathBarrier = 1;  // a named one, of all who multiply

__device__ __forceinline__ float sent_float(float value) {  // product_chain_exchange.cuh
  return __float_as_uint(value) == kUnsentFloat ? __uint_as_float(0x7fffffffU) : value;
}

__device__ __forceinline__ void add_vector(float* sums, const float4& v) {
  sums[0] += v.x;
  sums[1] += v.y;
  sums[2] += v.z;
  sums[3] += v.w;
}

// Which slabs of an item are whose.
struct SlabOwners {
  int way_mask;
  int part_mask;
  int parts_log2;

  __device__ __forceinline__ explicit SlabOwners(const WideProduct& product)
      : way_mask(product.ways() - 1), part_mask(product.parts - 1), parts_log2(product.parts_log2) {}
  __device__ __forceinline__ int way(int slab) const { return (slab + (slab >> parts_log2)) & way_mask; }
  __device__ __forceinline__ int part(int slab) const { return slab & part_mask; }
};

// The ways of a block add up. `left`: shared memory for what they leave one another.
template <class C>
__device__ __forceinline__ void add_ways(const SlabOwners& owners, const WideRole& role, float (&sums)[C::kTokens / 2],
                                         float4* left) {
  const int thread = threadIdx.x % 128;
  const auto place = [&](int slab, int from) {
    return left +
           ((slab * role.bands + role.band) * owners.way_mask + ((from - owners.way(slab) - 1) & owners.way_mask)) *
               128 +
           thread;
  };
#pragma unroll
  for (int slab = 0; slab < C::kSlabs; ++slab)
    if (owners.way(slab) != role.way)
      *place(slab, role.way) = {sums[4 * slab], sums[4 * slab + 1], sums[4 * slab + 2], sums[4 * slab + 3]};
  named_barrier_sync(kWideMathBarrier, C::kMathThreads);
#pragma unroll
  for (int slab = 0; slab < C::kSlabs; ++slab)
    if (owners.way(slab) == role.way)
#pragma unroll 1
      for (int way = 1; way <= owners.way_mask; ++way)
        add_vector(&sums[4 * slab], *place(slab, (role.way + way) & owners.way_mask));
}

// Where `from` leaves a slab for its part.
template <class C>
__device__ __forceinline__ float4* part_sums(float* sums, const SlabOwners& owners, int group, const WideRole& role,
                                             int slab, int from) {
  const int place =
      ((group * C::kSlabs + slab) * owners.part_mask + ((from - owners.part(slab) - 1) & owners.part_mask)) *
          role.bands +
      role.band;
  return reinterpret_cast<float4*>(sums) + std::int64_t{place} * 128 + threadIdx.x % 128;
}

template <class C>
__device__ __forceinline__ void receive_parts(float* from, const SlabOwners& owners, const WideItem& item,
                                              const WideRole& role, int slab, float* sums) {
#pragma unroll 1
  for (int part = 1; part <= owners.part_mask; ++part) {
    const float4* const place =
        part_sums<C>(from, owners, item.group, role, slab, (item.part + part) & owners.part_mask);
    uint4 v = load_relaxed_16b(place);
    while (!SentFloats::all(v)) v = load_relaxed_16b(place);
    add_vector(sums, {__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z), __uint_as_float(v.w)});
  }
}

// One token's sums of rows `row` and `row` + 8, added to h; leaves their squares.
__device__ __forceinline__ float finish_residual(const WideArgs& args, bool is_down, int token, int row,
                                                 const float (&h)[2], const float (&gain)[2], float scale) {
  float squares = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::int64_t at = std::int64_t{token} * args.shape.hidden + row + 8 * i;
    args.h[at] = h[i];
    args.exchange.x[is_down ? 3 : 1][at] = __float2half_rn(h[i] * gain[i] * scale);
    squares += h[i] * h[i];
  }
  return squares;
}

template <class C>
__device__ __forceinline__ void finish_h(const WideArgs& args, bool is_down, const SlabOwners& owners,
                                         const WideItem& item, const WideRole& role, int slab, float* sums,
                                         const typename C::Shared& shared) {
  const int lane = threadIdx.x % 32;
  const int tile = (item.first_band + role.band) * 4 + static_cast<int>(threadIdx.x) / 32 % 4;
  const int row = tile * 16 + lane / 4;
  const int token = slab * 8 + lane % 4 * 2;
  const __half* const gains = is_down ? args.layer.next_gain : args.layer.mlp_gain;
  const bool sends = gains != nullptr;
  // Asked for before other parts' sums are waited for.
  float h[2][2] = {};
  float gain[2] = {};
  float scale[2] = {};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (sends) gain[i] = __half2float(gains[row + 8 * i]);
    if (token + i >= args.tokens) continue;
#pragma unroll
    for (int r = 0; r < 2; ++r) h[i][r] = __ldcg(args.h + std::int64_t{token + i} * args.shape.hidden + row + 8 * r);
    scale[i] = is_down ? shared.scale[0][token + i] : __ldcg(args.inverse + token + i) * kLateHeadroom;
  }
  receive_parts<C>(args.exchange.sums[is_down ? 2 : 0], owners, item, role, slab, sums);
  float squares[2] = {};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    h[i][0] += sums[i];
    h[i][1] += sums[2 + i];
    if (token + i < args.tokens) {
      if (sends) {
        squares[i] = finish_residual(args, is_down, token + i, row, h[i], gain, scale[i]);
      } else {
        args.h[std::int64_t{token + i} * args.shape.hidden + row] = h[i][0];
        args.h[std::int64_t{token + i} * args.shape.hidden + row + 8] = h[i][1];
      }
    }
  }
  if (!sends) return;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int step = 16; step > 2; step /= 2) squares[i] += __shfl_xor_sync(~0U, squares[i], step);
    if (lane < 4 && token + i < args.tokens)
      __stcg(args.exchange.squares[is_down ? 1 : 0] + std::int64_t{token + i} * (args.shape.hidden / 16) + tile,
             squares[i]);
  }
}

template <class C>
__device__ __forceinline__ void finish_slab(const WideArgs& args, int p, const SlabOwners& owners, const WideItem& item,
                                            const WideRole& role, int slab, float* sums,
                                            const typename C::Shared& shared) {
  const auto product = static_cast<ChainProduct>(p);
  if (product == ChainProduct::attention_out || product == ChainProduct::down)
    return finish_h<C>(args, product == ChainProduct::down, owners, item, role, slab, sums, shared);
  receive_parts<C>(args.exchange.sums[p], owners, item, role, slab, sums);
  const int lane = threadIdx.x % 32;
  const int tile = (item.first_band + role.band) * 4 + static_cast<int>(threadIdx.x) / 32 % 4;
  const int token = slab * 8 + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (token + i >= args.tokens) continue;
    if (product == ChainProduct::gate_up) {
      const float factor = shared.factor[0][token + i];
      args.exchange.x[2][std::int64_t{token + i} * args.shape.intermediate + tile * 8 + lane / 4] =
          __float2half_rn(swiglu(sums[i] * factor, sums[2 + i] * factor));
    } else {
      const float factor = shared.factor[1][token + i];
      __half* const to = args.qkv + std::int64_t{token + i} * args.shape.qkv_rows + tile * 16 + lane / 4;
      to[0] = __float2half_rn(sums[i] * factor);
      to[8] = __float2half_rn(sums[2 + i] * factor);
    }
  }
}

// Adds up, stores and counts an item. All who multiply call.
template <class C>
__device__ __forceinline__ void finish_item(const WideArgs& args, int p, const WideItem& item, const WideRole& role,
                                            float (&sums)[C::kTokens / 2], unsigned char* smem) {
  auto& shared = *reinterpret_cast<typename C::Shared*>(smem + C::kSharedAt);
  const SlabOwners owners(args.products[p]);
  if (owners.way_mask > 0) add_ways<C>(owners, role, sums, reinterpret_cast<float4*>(smem + C::kLeftAt));
  if (role.band < item.bands) {
#pragma unroll
    for (int slab = 0; slab < C::kSlabs; ++slab)
      if (owners.way(slab) == role.way && owners.part(slab) != item.part)
        store_relaxed_16b(part_sums<C>(args.exchange.sums[p], owners, item.group, role, slab, item.part),
                          {sent_float(sums[4 * slab]), sent_float(sums[4 * slab + 1]), sent_float(sums[4 * slab + 2]),
                           sent_float(sums[4 * slab + 3])});
    if (p > 0) mbarrier_wait(shared_address(&shared.normed[p == 3 ? 1 : 0]), 0);
#pragma unroll
    for (int slab = 0; slab < C::kSlabs; ++slab)
      if (owners.way(slab) == role.way && owners.part(slab) == item.part)
        finish_slab<C>(args, p, owners, item, role, slab, &sums[4 * slab], shared);
  }
  fence_async_global();
  named_barrier_sync(kWideMathBarrier, C::kMathThreads);
  if (threadIdx.x == 0) count_release(args.exchange.counters + p * kWideCounterStride);
}

#endif

}  // namespace inferometer::decoder
