// Fields that the problems of attention share, as members of the same names, and what must hold of them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "harness/operator/fields.hpp"

namespace inferometer {

// How far apart the tokens of K and V lie: k_row_stride, v_row_stride.
template <class Problem>
std::vector<Field<Problem>> row_stride_fields() {
  return {
      {.name = "k_row_stride",
       .member = &Problem::k_row_stride,
       .doc = "elements of 16 or 32 bits from one token of K to the next; 0: those of its heads",
       .min = 0},
      {.name = "v_row_stride",
       .member = &Problem::v_row_stride,
       .doc = "elements of 16 or 32 bits from one token of V to the next; 0: those of its heads",
       .min = 0},
  };
}

// What becomes of scores before the softmax: window_left, soft_cap.
template <class Problem>
std::vector<Field<Problem>> score_fields() {
  constexpr double kMostSoftCap = 1e6;  // beyond it a cap is no cap
  return {
      {.name = "window_left",
       .member = &Problem::window_left,
       .doc = "keys before its own that a query sees, which sees none after it; -1: all",
       .min = -1,
       .max = std::numeric_limits<std::int32_t>::max()},
      {.name = "soft_cap",
       .member = &Problem::soft_cap,
       .doc = "bound c of scores, s becomes c tanh(s / c); 0: none",
       .real_max = kMostSoftCap},
  };
}

// All of these throw ProblemError naming the field at fault.

void check_heads(std::int64_t q_heads, std::int64_t kv_heads);
void check_soft_cap(double soft_cap);

// 0, or room for the heads of a token, `dim` elements each, in whole 16-byte accesses.
void check_row_stride(const std::string& name, std::int64_t stride, std::int64_t kv_heads, std::int64_t dim);

}  // namespace inferometer
