// The device side of product_ends.hpp.
#pragma once

#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/product_ends.hpp"

namespace inferometer {

// What a token's sums are to be multiplied with. The warp calls; every lane has it. `leaves`: also store 1 / rms(h), by
// one warp a token.
__device__ __forceinline__ float late_norm_factor(const LateNorm& norm, std::int64_t token, bool leaves) {
  if (norm.squares == nullptr) return 1;
  const float scale = norm.scale[token] * kLateHeadroom;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < norm.parts; i += 32) sum += norm.squares[token * norm.parts + i];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0U, sum, distance);
  const float inverse = rsqrtf(sum / static_cast<float>(norm.hidden) + norm.eps);
  if (leaves && threadIdx.x % 32 == 0) norm.inverse[token] = inverse;
  return inverse / scale;
}

}  // namespace inferometer
