// attention_prefill / flash_sm90: a warpgroup's 64 rows of O, straight from accumulators to memory.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm90_params.hpp"
#include "kernels/attention_prefill/flash_sm90_thread.cuh"
#include "kernels/attention_prefill/flash_sm90_work.hpp"
#include "kernels/common/half_ops.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <class T, int kVDim>
class OutputStore : WarpgroupThread {
 public:
  static constexpr int kOutputs = kVDim / 2;  // accumulators a thread

  // O times `inverse`, by row; 0 stands for a row that sees no key.
  __device__ __forceinline__ static void scale_rows(float (&acc)[kOutputs], const float (&inverse)[2]) {
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) acc[i] *= inverse[i / 2 % 2];
    if (!__any_sync(kWholeWarp, inverse[0] == 0.0F || inverse[1] == 0.0F)) return;
#pragma unroll
    for (int i = 0; i < kOutputs; ++i)
      if (inverse[i / 2 % 2] == 0.0F) acc[i] = 0;  // it may be NaN
  }

  // Four lanes hold neighbouring pairs of a row: they exchange them so that each stores 16 bytes.
  __device__ __forceinline__ static void rows(const FlashSm90Params& p, const WarpgroupWork& mine,
                                              const float (&acc)[kOutputs]) {
    T* o = static_cast<T*>(p.o) + mine.o_offset + row() * p.o_stride + 8 * (lane() % 4);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool exists = row() + 8 * r < mine.queries;
#pragma unroll
      for (int j = 0; j < kVDim / 32; ++j) {
        std::uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int at = (4 * j + i) * 4 + 2 * r;
          pairs[i] = pack_pair<T>(acc[at], acc[at + 1]);
        }
        exchange(pairs);
        if (exists)
          *reinterpret_cast<uint4*>(o + 8 * r * p.o_stride + 32 * j) = uint4{pairs[0], pairs[1], pairs[2], pairs[3]};
      }
    }
  }

  // Of rows that see nothing.
  __device__ static void zeros(const FlashSm90Params& p, const WarpgroupWork& mine) {
    T* o = static_cast<T*>(p.o) + mine.o_offset;
    for (int r = warp(); r < mine.queries; r += 4)
      for (int chunk = lane(); chunk < kVDim / 8; chunk += 32)
        *reinterpret_cast<uint4*>(o + r * p.o_stride + chunk * 8) = uint4{};
  }

 private:
  // Transposes the 4 x 4 matrix that four neighbouring lanes hold, a row each.
  __device__ __forceinline__ static void exchange(std::uint32_t (&row)[4]) {
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
      const bool upper = (lane() & step) != 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if ((i & step) != 0) continue;
        const std::uint32_t give = upper ? row[i] : row[i + step];
        const std::uint32_t got = __shfl_xor_sync(kWholeWarp, give, step);
        (upper ? row[i] : row[i + step]) = got;
      }
    }
  }
};

#endif

}  // namespace inferometer
