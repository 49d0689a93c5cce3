// The two 16-bit float types in device code: one name for each conversion, chosen by the type, and the way from a
// Dtype to a type. Packed pairs are 32-bit registers, the first element in the lower half, as mma and 16-byte loads
// have them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "harness/operator/dtype.hpp"

namespace inferometer {

template <class T>
struct HalfTraits;

template <>
struct HalfTraits<__half> {
  using Pair = __half2;
  static constexpr Dtype kDtype = Dtype::f16;
  static constexpr float kMax = 65504.0F;
};

template <>
struct HalfTraits<__nv_bfloat16> {
  using Pair = __nv_bfloat162;
  static constexpr Dtype kDtype = Dtype::bf16;
  static constexpr float kMax = 0x1.FEp127F;
};

// Rounds to nearest even; magnitudes that round past HalfTraits<T>::kMax become infinite.
template <class T>
__device__ __forceinline__ T from_float(float value) {
  if constexpr (HalfTraits<T>::kDtype == Dtype::f16) {
    return __float2half_rn(value);
  } else {
    return __float2bfloat16_rn(value);
  }
}

__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

// Two floats as a packed pair, rounded like from_float: one cvt instruction.
template <class T>
__device__ __forceinline__ std::uint32_t pack_pair(float first, float second) {
  typename HalfTraits<T>::Pair pair;
  if constexpr (HalfTraits<T>::kDtype == Dtype::f16) {
    pair = __floats2half2_rn(first, second);
  } else {
    pair = __floats2bfloat162_rn(first, second);
  }
  std::uint32_t bits;
  std::memcpy(&bits, &pair, sizeof(bits));  // the pair types are not trivially copyable: no bit_cast
  return bits;
}

// A packed pair as two floats, exactly.
template <class T>
__device__ __forceinline__ float2 unpack_pair(std::uint32_t bits) {
  typename HalfTraits<T>::Pair pair;
  std::memcpy(&pair, &bits, sizeof(bits));
  if constexpr (HalfTraits<T>::kDtype == Dtype::f16) {
    return __half22float2(pair);
  } else {
    return __bfloat1622float2(pair);
  }
}

// Calls f.template operator()<T>() with T the type of `dtype`: the step from a problem's field to a kernel template.
// Throws std::invalid_argument for any dtype but f16 and bf16; a variant refuses those in `unsupported`.
template <class F>
decltype(auto) with_half_type(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::f16: return f.template operator()<__half>();
    case Dtype::bf16: return f.template operator()<__nv_bfloat16>();
    default: throw std::invalid_argument("dtype must be f16 or bf16, got " + std::string(dtype_name(dtype)));
  }
}

}  // namespace inferometer
