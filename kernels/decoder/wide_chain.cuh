// The kernel of wide_chain.hpp.
//
// Four warpgroups multiply. Of the fifth, one warp copies weights, one x, and two turn sums of squares into what a norm
// multiplies with.
//
// Why it ends, if all blocks run (product_chain_gpu.hpp): copies of weights wait only for stages that their block gives
// back. Copies of x also wait until all items of the product before have been counted; an item is counted once its
// block has its inputs and the sums of its other parts, which their blocks send before they wait for anything of that
// product but its inputs.
#pragma once

#include <cstdint>

#include "kernels/decoder/wide_chain.hpp"
#include "kernels/decoder/wide_chain_finish.cuh"
#include "kernels/decoder/wide_chain_formats.cuh"
#include "kernels/decoder/wide_chain_ring.cuh"
#include "kernels/ptx/cache_policy.cuh"
#include "kernels/ptx/global_order.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace inferometer::decoder {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Calls f(p, item) for all items of the block.
template <class C, class F>
__device__ __forceinline__ void for_items(const WideArgs& args, F&& f) {
#pragma unroll 1
  for (int p = 0; p < args.product_count; ++p)
#pragma unroll 1
    for (int i = static_cast<int>(blockIdx.x); i < args.products[p].items; i += static_cast<int>(gridDim.x))
      f(p, WideItem::of<C>(args.products[p], i));
}

// Whether all items of a product have been counted.
__device__ __forceinline__ bool has_items(const WideArgs& args, int p) {
  return static_cast<int>(load_acquire_4b(args.exchange.counters + p * kWideCounterStride)) >=
         args.products[p].items - 1;
}

// One thread.
template <class C>
__device__ __forceinline__ void copy_weights(const WideArgs& args, const WideMaps& maps, unsigned char* smem) {
  auto& shared = *reinterpret_cast<typename C::Shared*>(smem + C::kSharedAt);
  const std::uint32_t full = shared_address(shared.full);
  const std::uint32_t empty = shared_address(shared.empty);
  const std::uint32_t stages = shared_address(smem) + C::kStagesAt;
  const std::uint64_t policy = evict_first_policy();
  WidePlace<C> place;
  for_items<C>(args, [&](int p, const WideItem& item) {
    typename C::Format::Copies copies(args, maps, p, item);
    const int slices = args.products[p].ways() * C::Format::kUnitSlices;
#pragma unroll 1
    for (int s = 0; s < item.stages; ++s) {
      mbarrier_wait(empty + place.stage * 8, place.parity ^ 1);
      mbarrier_arrive_expect_bytes(full + place.stage * 8, copies.bytes(slices));
      copies.start(stages + place.stage * C::Format::kStageBytes, full + place.stage * 8, slices, policy);
      place.next();
    }
  });
}

// One thread. When a product's x is there, the block has given back all stages of the products before: each begins with
// all slots free.
template <class C>
__device__ __forceinline__ void copy_x(const WideArgs& args, const WideMaps& maps, unsigned char* smem) {
  auto& shared = *reinterpret_cast<typename C::Shared*>(smem + C::kSharedAt);
  const std::uint32_t full = shared_address(shared.full);
  const std::uint32_t empty = shared_address(shared.empty);
  const std::uint32_t slots = shared_address(smem) + C::kXAt;
  const int slice_bytes = args.tokens * kWideSliceK * 2;
  WidePlace<C> place;
  WidePlace<C> before;  // the stage whose slots come next, or the one that was in this place
  int begun = 0;        // stages of the product
  int product = 0;
  std::uint32_t slot = 0;
  for_items<C>(args, [&](int p, const WideItem& item) {
    if (p > product) {
      while (!has_items(args, p - 1)) {
      }
      fence_async_global();
      product = p;
      begun = 0;
      slot = 0;
      before = place;
    }
    const int ways = args.products[p].ways();
    const int ahead = min(C::kXSlots / ways, C::kStages);
    int k = item.first_slice * kWideSliceK;
#pragma unroll 1
    for (int s = 0; s < item.stages; ++s) {
      if (begun++ >= ahead) {
        mbarrier_wait(empty + before.stage * 8, before.parity);
        before.next();
      }
      mbarrier_arrive_expect_bytes(full + place.stage * 8, ways * C::Format::kUnitSlices * slice_bytes);
      for (int way = 0; way < ways; ++way) {
#pragma unroll
        for (int i = 0; i < C::Format::kUnitSlices; ++i) {
          tma_load_2d(slots + slot * C::kXBytes + i * C::kSliceXBytes, &maps.x[p], full + place.stage * 8, k, 0);
          k += kWideSliceK;
        }
        slot = (slot + 1) % C::kXSlots;
      }
      place.next();
    }
  });
}

// Two warps: what the sums behind a norm are multiplied with, as soon as all squares are there.
template <class C>
__device__ __forceinline__ void make_norms(const WideArgs& args, int warp, unsigned char* smem) {
  auto& shared = *reinterpret_cast<typename C::Shared*>(smem + C::kSharedAt);
  const int lane = threadIdx.x % 32;
  const int parts = args.shape.hidden / 16;
  for (int norm = 0; norm < args.product_count - 2; ++norm) {
    while (!has_items(args, 2 * norm)) __nanosleep(100);  // an item's end is far away
    for (int token = warp; token < args.tokens; token += 2) {
      const float* const squares = args.exchange.squares[norm] + std::int64_t{token} * parts;
      float sum = 0;
      for (int i = lane; i < parts; i += 32) sum += __ldcg(squares + i);
#pragma unroll
      for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
      if (lane != 0) continue;
      const float inverse = rsqrtf(sum / static_cast<float>(args.shape.hidden) + args.eps);
      const float scale = norm == 0 ? __ldcg(args.inverse + token) * kLateHeadroom : shared.scale[0][token];
      shared.factor[norm][token] = inverse / scale;
      shared.scale[norm][token] = inverse * kLateHeadroom;
      if (norm == 1 && blockIdx.x == 0) args.inverse[token] = inverse;
    }
    if (lane == 0) mbarrier_arrive(shared_address(&shared.normed[norm]));
  }
}

template <class C>
__device__ __forceinline__ void multiply_items(const WideArgs& args, unsigned char* smem) {
  const int warpgroup = __shfl_sync(~0U, static_cast<int>(threadIdx.x) / 128, 0);
  WideRing<C> ring(smem);
  int product = 0;
  unsend({args.used}, args.used_bytes, static_cast<int>(blockIdx.x) * C::kMathThreads + static_cast<int>(threadIdx.x),
         static_cast<int>(gridDim.x) * C::kMathThreads);
  for_items<C>(args, [&](int p, const WideItem& item) {
    const WideRole role = WideRole::of(args.products[p], warpgroup);
    if (p > product) ring.begin_product();
    product = p;
    float sums[C::kTokens / 2] = {};
    C::Format::template multiply<C>(ring, item.stages, role, sums);
    finish_item<C>(args, p, item, role, sums, smem);
  });
}

#endif

template <class Format, int kTokens>
__global__ void __launch_bounds__(Wide<Format, kTokens>::kThreads, 1)
    wide_chain_kernel(const __grid_constant__ WideArgs args, const __grid_constant__ WideMaps maps) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using C = Wide<Format, kTokens>;
  extern __shared__ __align__(1024) unsigned char smem[];
  auto& shared = *reinterpret_cast<typename C::Shared*>(smem + C::kSharedAt);
  const int warp = __shfl_sync(~0U, static_cast<int>(threadIdx.x) / 32, 0);
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < C::kStages; ++s) {
      mbarrier_init(shared_address(&shared.full[s]), 2);  // of weights and of x
      mbarrier_init(shared_address(&shared.empty[s]), C::kMathWarps);
    }
    for (int norm = 0; norm < 2; ++norm) mbarrier_init(shared_address(&shared.normed[norm]), 2);
    mbarrier_init_fence();
  }
  __syncthreads();
  if (warp < C::kMathWarps) {
    take_registers<C::kMathRegisters>();
    multiply_items<C>(args, smem);
  } else {
    keep_registers<C::kCopyRegisters>();
    if (warp == C::kMathWarps) {
      if (lane == 0) copy_weights<C>(args, maps, smem);
    } else if (warp == C::kMathWarps + 1) {
      if (lane == 0) copy_x<C>(args, maps, smem);
    } else {
      make_norms<C>(args, warp - C::kMathWarps - 2, smem);
    }
  }
#endif
}

}  // namespace inferometer::decoder
