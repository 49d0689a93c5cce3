// Packed weights of 4 bits (matmul/packing.hpp) in product_chain_rows.cuh: symmetric, a group no shorter than a slice.
// A stage of the ring is a tile in 32 slices of 64.
//
// Codes are 1024 + u and 1024 + 16 u as they come out of a word; what is too much, 1032 and 1152 times the sum of x in
// a slice, is where its sums start from: a product with a tile of these constants. Fragments of W have the k of a step
// as mma has it, so vectors are sent in an order that gives a lane its k of two steps as 16 bytes.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/decoder/product_chain.hpp"
#include "kernels/decoder/product_chain_rows_slice.cuh"
#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_fragment.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/mma.cuh"

namespace inferometer::decoder {

struct RowsInt4 {
  using Codes = CodeForm<__half, 4>;
  static constexpr int kUnit = kTileRows;
  static constexpr int kCopyWarps = 4;  // a copy is of 544 bytes
  static constexpr int kCopyRegisters = 40;
  static constexpr int kTileStages = 1;
  static constexpr int kSlices = 32;
  static constexpr int kStageK = kSlices * kSliceK;
  static constexpr int kCopySlices = kSlices / kCopyWarps;
  static constexpr int kTileBytes = PackedShape{16, 64, 4, 128, true}.tile_bytes();
  static constexpr int kScalesAt = PackedShape{16, 64, 4, 128, true}.scales_at();
  static constexpr int kStageBytes = kSlices * kTileBytes;
  static constexpr float kLowerScale = 1 / Codes::kHighStep;

  static constexpr INFEROMETER_HOST_DEVICE int sent_at(int i) { return chain_fragment_place(i); }

#if __CUDA_ARCH__ >= 900

  // A lane's copy of a stage, a slice of the tile.
  __device__ static __forceinline__ RowsCopy copy(const void* weights, int rows, int k, bool, const ChainShare& share,
                                                  int tile, int, int at, int warp) {
    const int lane = threadIdx.x % 32;
    const int slices = min((k - at) / kSliceK - warp * kCopySlices, kCopySlices);  // of this warp
    const int slice = warp * kCopySlices + lane;
    const int row_tile = share.begin + tile;
    const int panel = row_tile / kPanelTiles * kPanelTiles;
    const int height = min(kPanelTiles, rows / kTileRows - panel);
    const std::int64_t number =
        std::int64_t{panel} * (k / kSliceK) + (at / kSliceK + slice) * height + row_tile - panel;
    return {.source = static_cast<const unsigned char*>(weights) + number * kTileBytes,
            .target = slice * kTileBytes,
            .bytes = lane < slices ? kTileBytes : 0,
            .of_warp = max(slices, 0) * kTileBytes};
  }

  // What the 16 bytes from `element` on would be, had they been sent.
  __device__ static __forceinline__ uint4 load_plain(const __half* x, int element) {
    const int t = threadIdx.x % 4;
    const auto* const words = reinterpret_cast<const std::uint32_t*>(x + element - t * 8 + t * 2);
    return {__ldcg(words), __ldcg(words + 4), __ldcg(words + 8), __ldcg(words + 12)};
  }

  // A warp's part of a slice of x with `left` of k in front of it, and what sums start from. Where k has ended x is
  // zero, and the first slice of W, which exists, serves as well: without a branch steps run beside each other.
  template <class C>
  class Multiply {
   public:
    __device__ __forceinline__ Multiply(const RowsSlice<C>& x, int left) : x_(x) {
      const int warp = threadIdx.x / 32;
#pragma unroll
      for (int step = 0; step < C::kSteps; ++step) {
        const int slice = step * C::kWarps + warp;
        at_[step] = slice * kSliceK < left ? slice * kTileBytes : 0;
      }
      constexpr std::uint32_t kUpper = 0xe408e408U;  // two -1032
      constexpr std::uint32_t kLower = 0xe480e480U;  // two -1152
#pragma unroll
      for (int step = 0; step < C::kSteps; ++step)
#pragma unroll
        for (int tokens = 0; tokens < C::kTokenTiles; ++tokens) {
#pragma unroll
          for (float& start : starts_[step][tokens]) start = 0;
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const uint4& b = x.part(step, tokens, half);
            mma_m16n8k16<__half>(starts_[step][tokens], {kUpper, kLower, kUpper, kLower}, b.x, b.y);
            mma_m16n8k16<__half>(starts_[step][tokens], {kUpper, kLower, kUpper, kLower}, b.z, b.w);
          }
        }
    }

    // sums += W[tile, slice] x^T of a tile whose stage is at `stage`; rows 8 to 15 kHighStep times too large.
    __device__ __forceinline__ void tile(float (&sums)[C::kTokenTiles][4], std::uint32_t stage, std::uint32_t) const {
      const int lane = threadIdx.x % 32;
#pragma unroll
      for (int step = 0; step < C::kSteps; ++step) {
        const std::uint32_t packed = stage + at_[step];
        std::uint32_t words[4];
        load_codes<4>(packed + lane * 16, words);
        const float upper = to_float(half_of<__half>(load_shared_2b(packed + kScalesAt + lane / 4 * 2)));
        const float lower = to_float(half_of<__half>(load_shared_2b(packed + kScalesAt + lane / 4 * 2 + 16)));
        float part[C::kTokenTiles][4];
#pragma unroll
        for (int tokens = 0; tokens < C::kTokenTiles; ++tokens)
#pragma unroll
          for (int i = 0; i < 4; ++i) part[tokens][i] = starts_[step][tokens][i];
#pragma unroll
        for (int quarter = 0; quarter < 4; ++quarter) {
          std::uint32_t a[4];
          Codes::raw(&words[quarter], a);
#pragma unroll
          for (int tokens = 0; tokens < C::kTokenTiles; ++tokens) {
            const uint4& b = x_.part(step, tokens, quarter / 2);
            mma_m16n8k16<__half>(part[tokens], a, quarter % 2 == 0 ? b.x : b.z, quarter % 2 == 0 ? b.y : b.w);
          }
        }
#pragma unroll
        for (int tokens = 0; tokens < C::kTokenTiles; ++tokens)
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[tokens][i] += (i < 2 ? upper : lower) * part[tokens][i];
      }
    }

   private:
    const RowsSlice<C>& x_;
    int at_[C::kSteps];
    float starts_[C::kSteps][C::kTokenTiles][4];
  };

#endif
};

}  // namespace inferometer::decoder
