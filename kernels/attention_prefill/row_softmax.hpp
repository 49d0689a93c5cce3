// Softmax over keys that arrive a block at a time (Milakov and Gimelshein 2018; Dao et al. 2022, algorithm 1): the
// arithmetic of one row, for host and device.
//
// With c = log2(e) / sqrt(head_dim), P = 2^(c S - c m). Any m serves in exact arithmetic, since O and the sum carry the
// same factor 2^(-c m); it must only keep the powers within range. So m need not be the largest score: it follows only
// when a score passes it by more than the margin, and P stays below 2^8, which neither f16 nor a f32 sum minds. On
// usual inputs m settles with the first block of keys and O is not rescaled again.
#pragma once

#include <cfloat>
#include <cmath>
#include <limits>

#include "harness/operator/dtype.hpp"
#include "kernels/attention_prefill/softmax_scale.hpp"

namespace inferometer {

struct RowSoftmax {
  // c S - c m is one FMA that rounds c m beforehand. The rounding error is common to a row and cancels, until it is so
  // large that the powers leave the range: scores of 1e12 err by thousands. Past this limit m is subtracted first.
  static constexpr float kFoldLimit = 0x1p16F;
  static constexpr float kUnseen = -std::numeric_limits<float>::infinity();

  float top = kUnseen;  // m; -infinity until a key is seen

  // Whether m must follow a score `seen`.
  INFEROMETER_HOST_DEVICE bool passed_by(float seen, const SoftmaxScale& scale) const {
    return seen > top + scale.margin;
  }

  // Raises m to `score` if that is larger. Returns the factor for what was summed so far.
  INFEROMETER_HOST_DEVICE float raise(float score, const SoftmaxScale& scale) {
    const float before = top;
    score = fminf(fmaxf(score, before), FLT_MAX);  // scores that overflowed
    if (score == before) return 1.0F;              // both may be -infinity
    // The difference of what was subtracted from the scores before and what will be from now on.
    const float step =
        fold(score, scale) ? times(score, scale.log2) - times(before, scale.log2) : (score - before) * scale.log2;
    top = score;
    return exp2f(-step);
  }

  // Whether c m may be folded into an FMA.
  INFEROMETER_HOST_DEVICE bool folds(const SoftmaxScale& scale) const { return fold(top, scale); }

  // c m, what the FMA subtracts; 0 while no key was seen, so that P is 0 and not NaN.
  INFEROMETER_HOST_DEVICE float offset(const SoftmaxScale& scale) const {
    return top == kUnseen ? 0.0F : times(top, scale.log2);
  }

  // Natural logarithm of the sum of exp(S / sqrt(head_dim)) over the row's keys; `sum` is that of P.
  INFEROMETER_HOST_DEVICE float log_sum_exp(float sum, const SoftmaxScale& scale) const {
    constexpr float kLn2 = 0.693147180559945309F;
    return sum == 0.0F ? kUnseen : times(top, scale.log2) * kLn2 + natural_log(sum);
  }

 private:
  // Rounded by itself: never part of an FMA, so that every use of c m is the same number.
  INFEROMETER_HOST_DEVICE static float times(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    const volatile float product = a * b;  // volatile: no compiler may make an FMA of it
    return product;
#endif
  }
  INFEROMETER_HOST_DEVICE static float natural_log(float x) {
#ifdef __CUDA_ARCH__
    return __logf(x);  // errs by 2^-21.4 near 1, three units in the last place elsewhere
#else
    return std::log(x);
#endif
  }
  INFEROMETER_HOST_DEVICE static bool fold(float m, const SoftmaxScale& scale) {
    return !(fabsf(times(m, scale.log2)) > kFoldLimit) || m == kUnseen;
  }
};

}  // namespace inferometer
