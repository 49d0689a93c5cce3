// Which keys a query sees.
#pragma once

#include "harness/operator/dtype.hpp"

namespace inferometer {

// Query i sees keys 0 .. last(i); none when last(i) < 0. Lengths up to 2^30, so that sums stay within int.
struct VisibleKeys {
  int kv_len = 0;
  int diagonal = 0;  // query 0 would see keys up to here, were they all there

  VisibleKeys() = default;
  INFEROMETER_HOST_DEVICE constexpr VisibleKeys(int q_len, int kv_length, bool causal)
      : kv_len(kv_length), diagonal(causal ? kv_length - q_len : kv_length) {}

  INFEROMETER_HOST_DEVICE constexpr int last(int query) const {
    const int limit = query + diagonal;
    return limit < kv_len ? limit : kv_len - 1;
  }
};

}  // namespace inferometer
