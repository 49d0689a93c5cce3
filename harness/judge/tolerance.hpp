// How far a correct answer may lie from the exact one: derived from the roundings a kernel cannot avoid. The
// derivations stand in tolerance.cpp. Input values are taken as independent and of mean zero, as `Normal` makes them.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"
#include "harness/operator/operator.hpp"

namespace inferometer {

// Relative error of a sum of `terms` products accumulated in f32, rounded to nearest or, in steps of 16, truncated.
double accumulation_error(std::int64_t terms);

// A sum of `terms` products of `stored` values, accumulated in f32 and rounded once to `stored`. `row_elements`: length
// of the spans that are judged.
Tolerance dot_product_tolerance(Dtype stored, std::int64_t terms, std::int64_t row_elements);

// What sets weights apart from normal ones: outliers anywhere and in whole columns, each a share of all, so many times
// as large.
struct HeavyTails {
  double outlier_share = 0;
  double outlier_factor = 1;
  double column_share = 0;
  double column_factor = 1;
};

// A bound of the largest of some 10^7 sums of `terms` products of a normal value and a weight, over the root mean
// square of all: 5.5 for many terms, more for few.
double largest_over_rms(std::int64_t terms, const HeavyTails& tails = {});

// O of attention over at most `keys` keys; spans of v_head_dim elements (0: head_dim). The unnormalised P may be
// rounded to `dtype` before P V (flash kernels), or S as well (kernels that store it), and O is.
Tolerance attention_output_tolerance(Dtype dtype, std::int64_t head_dim, std::int64_t keys,
                                     std::int64_t v_head_dim = 0);

// Log-sum-exp of the scores, in f32. `scores`: the type in which the kernel may hold S: f32 in fused kernels.
Tolerance log_sum_exp_tolerance(Dtype scores, std::int64_t head_dim, std::int64_t keys);

}  // namespace inferometer
