// The scale of attention's scores, in the forms its kernels use.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace inferometer {

struct SoftmaxScale {
  float log2 = 1;    // log2(e) / sqrt(head_dim): softmax as powers of two
  float margin = 0;  // how far a score may pass the value subtracted from its row: 8 / log2, a factor 2^8

  SoftmaxScale() = default;
  explicit SoftmaxScale(std::int64_t head_dim) {
    const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(head_dim));
    log2 = static_cast<float>(scale);
    margin = static_cast<float>(8.0 / scale);
  }
};

}  // namespace inferometer
