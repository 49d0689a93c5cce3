// Which keys a query sees.
#pragma once

#include "harness/operator/dtype.hpp"

namespace inferometer {

// Query i sees keys first(i) .. last(i); none when last(i) < first(i). Lengths up to 2^30, so that sums stay within
// int.
struct VisibleKeys {
  static constexpr int kLongest = 1 << 30;

  int kv_len = 0;
  int diagonal = 0;        // query 0 would see keys up to here, were they all there
  int oldest = -kLongest;  // and from here on, had they no beginning

  VisibleKeys() = default;
  // `window_left`: keys before its own that a query sees when causal; -1: all.
  INFEROMETER_HOST_DEVICE constexpr VisibleKeys(int q_len, int kv_length, bool causal, int window_left = -1)
      : kv_len(kv_length), diagonal(causal ? kv_length - q_len : kv_length) {
    if (window_left >= 0 && window_left < kLongest) oldest = diagonal - window_left;
  }

  INFEROMETER_HOST_DEVICE constexpr int last(int query) const {
    const int limit = query + diagonal;
    return limit < kv_len ? limit : kv_len - 1;
  }
  INFEROMETER_HOST_DEVICE constexpr int first(int query) const {
    const int limit = query + oldest;
    return limit > 0 ? limit : 0;
  }

  // The same for queries numbered from `query` on.
  INFEROMETER_HOST_DEVICE constexpr VisibleKeys from(int query) const {
    VisibleKeys keys = *this;
    keys.diagonal += query;
    keys.oldest += query;
    return keys;
  }
};

}  // namespace inferometer
