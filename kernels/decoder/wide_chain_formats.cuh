// Weights in wide_chain.cuh: how a stage of them is copied, and a warpgroup's multiplication of an item.
//
// 4 bits: packed tiles (matmul/packing.hpp: symmetric, groups of two slices), converted in registers, which are wgmma's
// A, the next slice's while one is multiplied; sums of a group are multiplied with its scales. 16 bits: rows as the
// copy engine leaves them are A.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/common/wgmma_matrix.cuh"
#include "kernels/decoder/wide_chain.hpp"
#include "kernels/decoder/wide_chain_ring.cuh"
#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_fragment.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace inferometer::decoder {

// A warpgroup's place in an item.
struct WideRole {
  int bands;  // of the item
  int ways;
  int band;
  int way;

  INFEROMETER_HOST_DEVICE static WideRole of(const WideProduct& product, int warpgroup) {
    return {product.bands, product.ways(), warpgroup & (product.bands - 1), warpgroup >> product.bands / 2};
  }
};

struct WideInt4 {
  static constexpr int kUnitSlices = 2;
  static constexpr int kTileBytes = PackedShape{64, 64, 4, 128, true}.tile_bytes();
  static constexpr int kScalesAt = PackedShape{64, 64, 4, 128, true}.scales_at();
  static constexpr int kUnitBytes = kBandTiles * kTileBytes;  // a slice of a band
  static constexpr int kStageBytes = kWideGroups * kUnitSlices * kUnitBytes;
  static_assert(kStageBytes % 1024 == 0);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

  // Slices of an item one after the other; one thread. Bands of an item lie in one panel.
  class Copies {
   public:
    __device__ __forceinline__ Copies(const WideArgs& args, const WideMaps&, int p, const WideItem& item)
        : bytes_(item.bands * kUnitBytes), step_(args.products[p].bands * kUnitBytes) {
      const WideProduct& product = args.products[p];
      const int slices = product.part_slices * product.parts;
      const int tiles = product.all_bands * kBandTiles;
      const int tile = item.first_band * kBandTiles;
      const int panel = tile / kPanelTiles * kPanelTiles;
      const int height = min(kPanelTiles, tiles - panel);
      stride_ = height * kTileBytes;
      source_ = static_cast<const unsigned char*>(args.layer.weights[p]) +
                (std::int64_t{panel} * slices + std::int64_t{item.first_slice} * height + tile - panel) * kTileBytes;
    }
    __device__ __forceinline__ int bytes(int slices) const { return slices * bytes_; }
    __device__ __forceinline__ void start(std::uint32_t stage, std::uint32_t barrier, int slices,
                                          std::uint64_t policy) {
      for (int i = 0; i < slices; ++i) {
        bulk_load(stage + i * step_, source_, bytes_, barrier, policy);
        source_ += stride_;
      }
    }

   private:
    const unsigned char* source_;
    int bytes_;
    int step_;
    int stride_;
  };

  using Fragments = std::uint32_t[kWideSliceK / kStepK][4];

  // code - 8, exactly, of a lane's tile; `codes` is the shared address of its 16 bytes.
  __device__ static __forceinline__ void convert(std::uint32_t codes, Fragments& fragments) {
    using Codes = CodeForm<__half, 4>;
    std::uint32_t words[4];
    load_codes<4>(codes, words);
    const ExactCodes<__half, 4> exact(Codes::kMiddle, Codes::kMiddle);
#pragma unroll
    for (int step = 0; step < kWideSliceK / kStepK; ++step) exact.convert(&words[step], fragments[step]);
  }

  // Starts part += fragments x^T, or part = that. The fragments stay as they are until it is done.
  template <class C, bool kFirst>
  __device__ static __forceinline__ void start_products(const Fragments& fragments, std::uint32_t x,
                                                        float (&part)[C::kTokens / 2]) {
    const std::uint64_t descriptor = k_major_descriptor(x);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kWideSliceK / kStepK; ++step)
      Wgmma<__half, C::kTokens>::template run<BLayout::k_major>(
          part, fragments[step], advance_descriptor(descriptor, step * kStepK * 2), !kFirst || step > 0);
    wgmma_commit();
  }

  // sums += W[item, role] x^T over the item's stages. A stage is one group of scales, which its sums are multiplied
  // with.
  template <class C>
  __device__ static __forceinline__ void multiply(WideRing<C>& ring, int stages, const WideRole& role,
                                                  float (&sums)[C::kTokens / 2]) {
    const int tile = (role.way * kUnitSlices * role.bands + role.band) * kUnitBytes +
                     static_cast<int>(threadIdx.x) / 32 % 4 * kTileBytes;
    std::uint32_t places[] = {static_cast<std::uint32_t>(tile + threadIdx.x % 32 * 16),
                              static_cast<std::uint32_t>(tile + kScalesAt + threadIdx.x % 32 / 4 * 2)};
    pin_registers(places);  // or they are computed anew for every slice
    const int next_slice = role.bands * kUnitBytes;
    const int x_bytes = role.ways * C::kXBytes;
    const int x_of_way = role.way * C::kXBytes;
    Fragments even;
    Fragments odd;
    float part[C::kTokens / 2];
    ring.wait();
    convert(ring.stage() + places[0], even);
#pragma unroll 1
    for (int s = 0; s < stages; ++s) {
      start_products<C, true>(even, ring.x() + x_of_way, part);
      convert(ring.stage() + places[0] + next_slice, odd);
      const std::uint16_t low = load_shared_2b(ring.stage() + places[1]);
      const std::uint16_t high = load_shared_2b(ring.stage() + places[1] + 16);
      wgmma_wait<0>();
      start_products<C, false>(odd, ring.x() + x_of_way + C::kSliceXBytes, part);
      const std::uint32_t empty = ring.empty();
      ring.next(x_bytes);
      if (s + 1 < stages) {
        ring.wait();
        convert(ring.stage() + places[0], even);
      }
      wgmma_wait<0>();
      __syncwarp();  // what all lanes have read
      if (threadIdx.x % 32 == 0) mbarrier_arrive(empty);
      const float of_low = to_float(half_of<__half>(low));
      const float of_high = to_float(half_of<__half>(high));
#pragma unroll
      for (int i = 0; i < C::kTokens / 2; ++i) sums[i] += (i % 4 < 2 ? of_low : of_high) * part[i];
    }
  }

#endif
};

struct WideHalves {
  static constexpr int kUnitSlices = 1;
  static constexpr int kUnitBytes = kWideBandRows * kWideSliceK * 2;
  static constexpr int kStageBytes = kWideGroups * kUnitSlices * kUnitBytes;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

  class Copies {
   public:
    __device__ __forceinline__ Copies(const WideArgs& args, const WideMaps& maps, int p, const WideItem& item)
        : map_(&maps.w[p]),
          step_(args.products[p].bands * kUnitBytes),
          row_(item.first_band * kWideBandRows),
          k_(item.first_slice * kWideSliceK) {}
    // Rows past the end arrive as zeros, and count.
    __device__ __forceinline__ int bytes(int slices) const { return slices * step_; }
    __device__ __forceinline__ void start(std::uint32_t stage, std::uint32_t barrier, int slices, std::uint64_t) {
      for (int i = 0; i < slices; ++i) {
        tma_load_2d(stage + i * step_, map_, barrier, k_, row_);
        k_ += kWideSliceK;
      }
    }

   private:
    const CUtensorMap* map_;
    int step_;
    int row_;
    int k_;
  };

  template <class C>
  __device__ static __forceinline__ void multiply(WideRing<C>& ring, int stages, const WideRole& role,
                                                  float (&sums)[C::kTokens / 2]) {
    const int unit = (role.way * role.bands + role.band) * kUnitBytes;
    const int x_bytes = role.ways * C::kXBytes;
    const int x_of_way = role.way * C::kXBytes;
#pragma unroll 1
    for (int s = 0; s < stages; ++s) {
      ring.wait();
      const std::uint64_t w = k_major_descriptor(ring.stage() + unit);
      const std::uint64_t x = k_major_descriptor(ring.x() + x_of_way);
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < kWideSliceK / kStepK; ++step)
        Wgmma<__half, C::kTokens>::template run<BLayout::k_major>(sums, advance_descriptor(w, step * kStepK * 2),
                                                                  advance_descriptor(x, step * kStepK * 2), true);
      wgmma_commit();
      wgmma_wait<0>();
      if (threadIdx.x % 32 == 0) mbarrier_arrive(ring.empty());
      ring.next(x_bytes);
    }
    pin_registers(sums);
  }

#endif
};

}  // namespace inferometer::decoder
