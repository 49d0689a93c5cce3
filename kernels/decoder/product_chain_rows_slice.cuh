// What a lane copies of weights and loads of activations at once in product_chain_rows.cuh.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/decoder/product_chain_exchange.cuh"
#include "kernels/ptx/global_relaxed.cuh"

namespace inferometer::decoder {

// A lane's copy of a stage of the ring, and the bytes of its warp's.
struct RowsCopy {
  const void* source;
  int target;  // in the stage
  int bytes;   // 0: none
  int of_warp;
};

#if __CUDA_ARCH__ >= 900

// A lane's part of a slice of x: of token g of each tile of tokens the k of its 16 bytes, t, of each half of a step.
template <class C>
class RowsSlice {
 public:
  // Of x [tokens, k], from `at` on. Begins the loads. `plain`: of what was there before the launch.
  __device__ __forceinline__ void ask(const __half* x, bool plain, int tokens, int k, int at) {
    each(tokens, k, at, [&](uint4& v, bool exists, int element) {
      v = {};
      if (exists) v = plain ? C::Format::load_plain(x, element) : load_relaxed_16b(x + element);
    });
  }

  // Until all of it has been sent. `probe`: until the first of its vectors is there no other is asked for again, so
  // that the L2 is free for copies of weights.
  __device__ __forceinline__ void await(const __half* x, int tokens, int k, int at, bool probe) {
    bool again = true;
    while (probe && again) {
      again = !SentHalves::all(v_[0][0][0]);
      if (again) v_[0][0][0] = load_relaxed_16b(x + element(0, 0, 0, k, at));
    }
    again = true;
    while (again) {
      again = false;
      each(tokens, k, at, [&](uint4& v, bool, int element) {
        if (SentHalves::all(v)) return;
        v = load_relaxed_16b(x + element);
        again = true;
      });
    }
    __syncwarp();
  }

  __device__ __forceinline__ const uint4& part(int step, int tile, int half) const { return v_[step][tile][half]; }

 private:
  template <class Use>
  __device__ __forceinline__ void each(int tokens, int k, int at, const Use& use) {
    const int warp = threadIdx.x / 32;
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int step = 0; step < C::kSteps; ++step) {
      const bool exists = at + (step * C::kWarps + warp) * C::kStepK < k;
#pragma unroll
      for (int tile = 0; tile < C::kTokenTiles; ++tile)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          use(v_[step][tile][half], exists && tile * 8 + g < tokens, element(step, tile, half, k, at));
    }
  }

  __device__ static __forceinline__ int element(int step, int tile, int half, int k, int at) {
    const int warp = threadIdx.x / 32;
    const int g = threadIdx.x % 32 / 4;
    const int t = threadIdx.x % 4;
    return (tile * 8 + g) * k + at + (step * C::kWarps + warp) * C::kStepK + half * 32 + t * 8;
  }

  uint4 v_[C::kSteps][C::kTokenTiles][2];
};

#endif

}  // namespace inferometer::decoder
