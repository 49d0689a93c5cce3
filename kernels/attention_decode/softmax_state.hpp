// The running state of a softmax over part of the keys, and how two parts become one (Milakov and Gimelshein 2018).
// Host and device share these functions, so that the CPU tests what the kernel does with empty parts.
#pragma once

#include <cmath>
#include <limits>

#include "harness/operator/dtype.hpp"

namespace inferometer {

// Scores are q . k as they come out of the product. The softmax scale is applied to differences of scores only: score
// times scale, rounded on its own, would not cancel against the maximum's once scores pass 2^24.
struct alignas(8) SoftmaxState {
  float max = -std::numeric_limits<float>::infinity();  // of the scores; -infinity: no key seen
  float sum = 0.0F;                                     // of 2^((score - max) * scale_log2)
};

// What a sum taken relative to `from_max` is worth relative to `to_max` >= `from_max`; 0 for a part without keys.
INFEROMETER_HOST_DEVICE inline float rescale_factor(float from_max, float to_max, float scale_log2) {
  if (from_max == -std::numeric_limits<float>::infinity()) return 0.0F;  // also where both are: -inf - -inf is NaN
  return exp2f((from_max - to_max) * scale_log2);
}

INFEROMETER_HOST_DEVICE inline SoftmaxState merge(SoftmaxState a, SoftmaxState b, float scale_log2) {
  const float max = fmaxf(a.max, b.max);
  return {max, a.sum * rescale_factor(a.max, max, scale_log2) + b.sum * rescale_factor(b.max, max, scale_log2)};
}

// What the sum of weighted values is divided by; 0 makes the output of a query without keys 0.
INFEROMETER_HOST_DEVICE inline float normaliser(SoftmaxState state) {
  return state.sum == 0.0F ? 0.0F : 1.0F / state.sum;
}

// log(sum of e^(scale * score)), natural logarithm; -infinity without keys.
INFEROMETER_HOST_DEVICE inline float log_sum_exp(SoftmaxState state, float scale) {
  if (state.sum == 0.0F) return -std::numeric_limits<float>::infinity();
  return state.max * scale + logf(state.sum);
}

}  // namespace inferometer
