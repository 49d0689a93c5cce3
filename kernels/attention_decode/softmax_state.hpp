// The running state of a softmax over part of the keys, and how parts become one (Milakov and Gimelshein 2018).
// Host and device share these functions, so that the CPU tests what the kernel does with empty parts.
#pragma once

#include <cmath>
#include <limits>

#include "harness/operator/dtype.hpp"
#ifdef __CUDACC__
#include "kernels/ptx/exp2.cuh"
#endif

namespace inferometer {

// Scores are q . k as they come out of the product. The softmax scale is applied to differences of scores only: score
// times scale, rounded on its own, would not cancel against the maximum's once scores pass 2^24.
struct alignas(8) SoftmaxState {
  float max = -std::numeric_limits<float>::infinity();  // near the greatest score, or it; -infinity: no key seen
  float sum = 0.0F;                                     // of 2^((score - max) * scale_log2)
};

// What a sum taken relative to `from_max` is worth relative to `to_max` >= `from_max`; 0 for a part without keys.
INFEROMETER_HOST_DEVICE inline float rescale_factor(float from_max, float to_max, float scale_log2) {
  if (from_max == -std::numeric_limits<float>::infinity()) return 0.0F;  // also where both are: -inf - -inf is NaN
#ifdef __CUDA_ARCH__
  return exp2_approx((from_max - to_max) * scale_log2);
#else
  return std::exp2((from_max - to_max) * scale_log2);
#endif
}

// What the sum of weighted values is divided by; 0 makes the output of a query without keys 0.
INFEROMETER_HOST_DEVICE inline float normaliser(SoftmaxState state) {
  if (state.sum == 0.0F) return 0.0F;
#ifdef __CUDA_ARCH__
  return __fdividef(1.0F, state.sum);  // within 2 ulp; the sum is far from the 2^126 where it would give 0
#else
  return 1.0F / state.sum;
#endif
}

// log(sum of e^(scale * score)), natural logarithm; -infinity without keys.
INFEROMETER_HOST_DEVICE inline float log_sum_exp(SoftmaxState state, float scale) {
  if (state.sum == 0.0F) return -std::numeric_limits<float>::infinity();
  return state.max * scale + logf(state.sum);
}

}  // namespace inferometer
