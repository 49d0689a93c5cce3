// Rows of f16 in product_chain_rows.cuh. A tile is two stages of the ring: 8 rows and 8 more, where the product is
// gated 8 gates and their ups. Rows of a stage lie 64 bytes apart modulo 128, so that 8 lanes read from 8 places of the
// banks.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/decoder/product_chain.hpp"
#include "kernels/decoder/product_chain_rows_slice.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/mma.cuh"

namespace inferometer::decoder {

struct RowsHalves {
  static constexpr int kUnit = 1;
  static constexpr int kCopyWarps = 1;
  static constexpr int kCopyRegisters = 24;
  static constexpr int kTileStages = 2;
  static constexpr int kStageRows = 8;
  static constexpr int kStageK = 1024;
  static constexpr int kRowBytes = kStageK * 2 + 64;
  static constexpr int kStageBytes = kStageRows * kRowBytes;
  static constexpr float kLowerScale = 1;  // of sums of rows 8 to 15

  // Where element `i` of a vector lies in what is sent of it.
  static constexpr INFEROMETER_HOST_DEVICE int sent_at(int i) { return i; }

#if __CUDA_ARCH__ >= 900

  // A lane's copy of a stage, a row.
  __device__ static __forceinline__ RowsCopy copy(const void* weights, int, int k, bool gated, const ChainShare& share,
                                                  int tile, int stage, int at, int) {
    const int lane = threadIdx.x % 32;
    const int row = lane < kStageRows ? chain_tile_row(gated, share, tile, stage, lane) : -1;
    const int bytes = min(k - at, kStageK) * 2;
    return {.source = static_cast<const __half*>(weights) + static_cast<std::int64_t>(row) * k + at,
            .target = lane * kRowBytes,
            .bytes = row >= 0 ? bytes : 0,
            .of_warp = __popc(__ballot_sync(~0U, row >= 0)) * bytes};
  }

  // 16 bytes that were there before the launch.
  __device__ static __forceinline__ uint4 load_plain(const __half* x, int element) {
    return __ldcg(reinterpret_cast<const uint4*>(x + element));
  }

  // A warp's part of a slice of x with `left` of k in front of it, and W's columns for it. Where k has ended x is zero,
  // and the first columns, which exist, serve as well: without a branch steps run beside each other.
  template <class C>
  class Multiply {
   public:
    __device__ __forceinline__ Multiply(const RowsSlice<C>& x, int left) : x_(x) {
      const int warp = threadIdx.x / 32;
#pragma unroll
      for (int step = 0; step < C::kSteps; ++step) {
        const int at = (step * C::kWarps + warp) * C::kStepK;
        at_[step] = threadIdx.x % 32 / 4 * kRowBytes + threadIdx.x % 4 * 16 + (at < left ? at * 2 : 0);
      }
    }

    // sums += W[tile, slice] x^T of a tile whose stages are at `upper` and `lower`.
    __device__ __forceinline__ void tile(float (&sums)[C::kTokenTiles][4], std::uint32_t upper,
                                         std::uint32_t lower) const {
#pragma unroll
      for (int step = 0; step < C::kSteps; ++step)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uint4 u = load_shared_16b(upper + at_[step] + half * 64);
          const uint4 l = load_shared_16b(lower + at_[step] + half * 64);
#pragma unroll
          for (int tokens = 0; tokens < C::kTokenTiles; ++tokens) {
            const uint4& b = x_.part(step, tokens, half);
            mma_m16n8k16<__half>(sums[tokens], {u.x, l.x, u.y, l.y}, b.x, b.y);
          }
#pragma unroll
          for (int tokens = 0; tokens < C::kTokenTiles; ++tokens) {
            const uint4& b = x_.part(step, tokens, half);
            mma_m16n8k16<__half>(sums[tokens], {u.z, l.z, u.w, l.w}, b.z, b.w);
          }
        }
    }

   private:
    const RowsSlice<C>& x_;
    int at_[C::kSteps];
  };

#endif
};

}  // namespace inferometer::decoder
