// What differs in sm90_matmul_kernel for int8: the instruction, and what becomes of its sums, which are exact:
// y = sum * (scale of the token * scale of the output feature), in f32, then rounded.
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/sm90_mainloop.cuh"
#include "kernels/matmul/w8a8_kernels.hpp"

namespace inferometer {

// The output of tiles whose A is W (kWeightsAreA) or X. A tile at the edge has rows past the last: their sums are not
// stored, and get the last one's scale.
template <class T, bool kWeightsAreA>
struct ScaledOutput : OutputScales<T> {
  // Sums of row `a` of A and of rows `b`, even, and b + 1 of B.
  __device__ __forceinline__ std::uint32_t pack(std::uint32_t a, std::uint32_t b, std::int32_t first,
                                                std::int32_t second) const {
    const float of_a = kWeightsAreA ? to_float(__ldg(this->of_features + min(a, this->n - 1)))
                                    : __ldg(this->of_tokens + min(a, this->m - 1));
    const float2 of_b = kWeightsAreA ? tokens(b) : features(b);
    return pack_pair<T>(static_cast<float>(first) * (of_a * of_b.x), static_cast<float>(second) * (of_a * of_b.y));
  }

 private:
  __device__ __forceinline__ float2 tokens(std::uint32_t b) const {
    return __ldg(reinterpret_cast<const float2*>(this->of_tokens + min(b, (this->m - 1) / 2 * 2)));
  }
  __device__ __forceinline__ float2 features(std::uint32_t b) const {
    if (b + 1 < this->n) return unpack_pair<T>(__ldg(reinterpret_cast<const std::uint32_t*>(this->of_features + b)));
    const float last = to_float(__ldg(this->of_features + this->n - 1));
    return {last, last};
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <>
struct Sm90Element<std::int8_t> {
  using Sum = std::int32_t;
  template <int N>
  __device__ static void multiply(Sum (&sums)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate) {
    WgmmaS8<N>::run(sums, a, b, accumulate);
  }
};

#endif

}  // namespace inferometer
