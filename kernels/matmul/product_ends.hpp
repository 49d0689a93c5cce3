// What the products of a decoder may end in instead of Y = X W^T, so that no kernel of their own reads their outputs.
//
// Gated: Y = silu(X G^T) * (X U^T), [m, n / 2], from one matrix W [n, k] that holds the rows of G and of U in turns, 8
// of one and 8 of the other. In the accumulators of mma and wgmma a thread then has the sums of a feature's two rows,
// which lie 8 apart, so that neither is rounded or stored.
//
// Residual: h += X W^T in f32, and what the RMSNorm behind it can know before all of h is there: h * gain, and sums of
// squares. RMSNorm(h) = (h * gain) / rms(h), and that divisor is one number a token: the product that follows
// multiplies its sums by it. Each sum of squares has its place and they are added up in one order: same bits in every
// run.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace inferometer {

inline constexpr int kGatedRows = 8;  // of G, then as many of U

inline void require_gated_rows(std::int64_t n) {
  if (n % (2 * kGatedRows) != 0)
    throw std::invalid_argument("a gated product: n must be a multiple of 16, got " + std::to_string(n));
}

inline void require_residual_columns(std::int64_t n) {
  if (n % 8 != 0)
    throw std::invalid_argument("a residual product: n must be a multiple of 8, got " + std::to_string(n));
}

// `has`: what the product's has_late_norm says. Other kernels would leave a norm out, and have no residual end.
inline void require_late_norm(bool has, std::int64_t m) {
  if (!has)
    throw std::invalid_argument(
        "a product with a late norm or a residual end: m must be one that has_late_norm allows, got " +
        std::to_string(m));
}

// What keeps x = h * gain within f16 before rms(h) is known: `scale`, 1 / rms of h at the norm before, and room for
// what has grown since. An element of RMSNorm(h) / gain is at most sqrt(hidden), 64 to 128, so rms may grow 32000
// times; and what is rounded as a subnormal number, 2^-8 of rms or less, errs by 2^-19 of rms.
inline constexpr float kLateHeadroom = 0x1p-6F;

// The divisor of an RMSNorm whose product has been computed without it.
struct LateNorm {
  const float* squares = nullptr;  // [m, parts] sums over parts of h^2; null: x is normed
  const float* scale = nullptr;    // [m]: x is h * gain * scale * kLateHeadroom
  float* inverse = nullptr;        // [m]: 1 / rms(h) is left here, apart from `scale`
  int parts = 0;
  int hidden = 0;
  float eps = 0;
};

struct GatedEnd {
  LateNorm norm;
};

struct ResidualEnd {
  float* h = nullptr;  // [m, n], n a multiple of 8
  const __half* gain = nullptr;
  const float* scale = nullptr;  // [m]
  __half* x = nullptr;           // [m, n] = h * gain * scale * kLateHeadroom
  float* squares = nullptr;      // [m, parts]
  int parts = 0;                 // as the product's plan says
};

// Y = X W^T, rounded: as any product.
struct RoundedEnd {};

}  // namespace inferometer
