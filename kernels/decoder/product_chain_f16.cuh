// Rows of f16 in product_chain.cuh. A group is 8 rows (4 features where it is gated: gates, then ups).
//
// Tokens are A of mma.m16n8k16, W is B: a column is a row of W, 16 bytes a lane. From even rows a lane takes the first
// 64 bytes of 128, from odd rows the second, so that 8 lanes read from 8 places of the banks. A's rows 0 to 7 are the
// tokens with the k of even columns, rows 8 to 15 the tokens with the k of odd ones, and each column is taken from its
// own half.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/decoder/product_chain.hpp"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/mma.cuh"

namespace inferometer::decoder {

struct ChainHalves {
  static constexpr int kStageK = 1024;  // 16 KB a stage
  static constexpr int kWarps = 8;      // that multiply
  static constexpr int kCopyWarps = 1;  // rows are long: with 2 or 4 a step takes 80 us more
  static constexpr int kUnit = 1;
  static constexpr int kGroupRows = 8;
  static constexpr int kUpRow = 4;  // of a group, of its first feature
  static constexpr int kRowBytes = kStageK * 2;
  static constexpr int kStageBytes = kGroupRows * kRowBytes;
  static constexpr int kXBytesOfStage = kStageK * 2;
  static constexpr int kStepK = 64;  // 128 bytes of a row
  static constexpr int kSteps = kStageK / kStepK / kWarps;
  static_assert(kStageK % (kStepK * kWarps) == 0 && kCopyWarps == 1);

  static constexpr INFEROMETER_HOST_DEVICE int x_bytes(int k) { return k * 2; }
  static constexpr INFEROMETER_HOST_DEVICE int gate_row(int feature) { return feature; }

  // Row of W that is row `r` of a group, or -1 past the share's end.
  static constexpr INFEROMETER_HOST_DEVICE int matrix_row(bool gated, const ChainShare& share, int group, int r) {
    const int i = gated ? group * kUpRow + r % kUpRow : group * kGroupRows + r;
    if (i >= share.count) return -1;
    const int at = share.begin + i;
    return gated ? at / 8 * 16 + r / kUpRow * 8 + at % 8 : at;
  }

#if __CUDA_ARCH__ >= 900

  // One lane's copies of a group: a row.
  class Copies {
   public:
    __device__ __forceinline__ Copies(const void* weights, int, int k, bool gated, const ChainShare& share, int group,
                                      int) {
      const int lane = threadIdx.x % 32;
      const int row = lane < kGroupRows ? matrix_row(gated, share, group, lane) : -1;
      has_row_ = row >= 0;
      rows_ = __popc(__ballot_sync(~0U, has_row_));
      source_ = static_cast<const __half*>(weights) + static_cast<std::int64_t>(row) * k;
    }

    // Of a stage with `left` of k in front of it.
    __device__ __forceinline__ int bytes(int left) const { return rows_ * min(left, kStageK) * 2; }

    __device__ __forceinline__ void start(std::uint32_t stage, std::uint32_t barrier, int left, std::uint64_t policy) {
      if (!has_row_) return;
      bulk_load(stage + threadIdx.x % 32 * kRowBytes, source_, min(left, kStageK) * 2, barrier, policy);
      source_ += kStageK;
    }

   private:
    const __half* source_;
    int rows_;  // of the group
    bool has_row_;
  };

  // Puts elements 8 i to 8 i + 7 of x in their place; all lanes of a warp together.
  __device__ static __forceinline__ void put_x(unsigned char* x, int, int i, const uint4& v, bool exists) {
    if (exists) reinterpret_cast<uint4*>(x)[i] = v;
  }

  // A lane's sums of a group.
  class Sums {
   public:
    // sums += W[group, stage] x^T: this warp's part of a stage with `left` of k in front of it.
    __device__ __forceinline__ void multiply(std::uint32_t stage, std::uint32_t x, std::uint32_t, int, int left) {
      const int warp = threadIdx.x / 32;
      const int g = threadIdx.x % 32 / 4;
      const int t = threadIdx.x % 4;
      const std::uint32_t weights = stage + g * kRowBytes + warp * kStepK * 2 + (t + g % 2 * 4) * 16;
      const std::uint32_t lane_x = x + warp * kStepK * 2 + t * 16;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if ((step * kWarps + warp) * kStepK >= left) break;
        const std::uint32_t at = step * kWarps * kStepK * 2;
        const uint4 w0 = load_shared_16b(weights + at);
        const uint4 w1 = load_shared_16b((weights ^ 64) + at);
        const uint4 x0 = load_shared_16b(lane_x + at);
        const uint4 x1 = load_shared_16b(lane_x + 64 + at);
        mma_m16n8k16<__half>(first_, {x0.x, x1.x, x0.y, x1.y}, w0.x, w0.y);
        mma_m16n8k16<__half>(second_, {x0.z, x1.z, x0.w, x1.w}, w0.z, w0.w);
        mma_m16n8k16<__half>(first_, {x1.x, x0.x, x1.y, x0.y}, w1.x, w1.y);
        mma_m16n8k16<__half>(second_, {x1.z, x0.z, x1.w, x0.w}, w1.z, w1.w);
      }
    }

    // The warp's sums of the group's rows.
    __device__ __forceinline__ void put(float (&to)[kGroupRows]) const {
      const int lane = threadIdx.x % 32;
      if (lane < 4) *reinterpret_cast<float2*>(&to[lane * 2]) = {first_[0] + second_[0], first_[3] + second_[3]};
    }

   private:
    float first_[4] = {};
    float second_[4] = {};
  };

#endif
};

}  // namespace inferometer::decoder
