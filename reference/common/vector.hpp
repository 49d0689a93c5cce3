// One SIMD register of floats in the compiler's vector extension: the same source is AVX-512, AVX2 or NEON.
#pragma once

#include <cstdint>
#include <cstring>
#include <numbers>

namespace inferometer {

#ifdef __AVX512F__
inline constexpr int kLanes = 16;
#else
inline constexpr int kLanes = 8;
#endif

using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));
using VectorBits = std::uint32_t __attribute__((vector_size(kLanes * sizeof(float))));

// From and to any address; one instruction.
inline Vector load_vector(const float* source) {
  Vector value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

inline void store_vector(float* destination, Vector value) { std::memcpy(destination, &value, sizeof value); }

inline Vector max_vector(Vector a, Vector b) { return a > b ? a : b; }

// Coefficient of f^degree in the Taylor series of 2^f: (ln 2)^degree / degree!
constexpr float exp2_coefficient(int degree) {
  double coefficient = 1;
  for (int i = 1; i <= degree; ++i) coefficient *= std::numbers::ln2 / i;
  return static_cast<float>(coefficient);
}

// 2^x for x <= 0, relative error below 2^-23; 0 below -126, where 2^x would be subnormal.
// x = n + f with n whole and |f| <= 1/2; 2^f by its Taylor polynomial of degree 7, whose remainder is below
// (ln 2 / 2)^8 / 8! * sqrt(2) = 8e-9; 2^n by adding n to the exponent.
inline Vector exp2_vector(Vector x) {
  constexpr float kRound = 0x1.8p23F;  // adding it leaves no bits for the fraction, and n in the low bits
  const Vector shifted = x + kRound;
  const Vector f = x - (shifted - kRound);
  Vector power = f * exp2_coefficient(7) + exp2_coefficient(6);
#pragma GCC unroll 8
  for (int degree = 5; degree >= 0; --degree) power = power * f + exp2_coefficient(degree);
  const VectorBits bits = reinterpret_cast<VectorBits>(power) + (reinterpret_cast<VectorBits>(shifted) << 23);
  return x < -126.0F ? Vector{} : reinterpret_cast<Vector>(bits);
}

}  // namespace inferometer
