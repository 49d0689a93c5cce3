// Integer and FP8 codes, as they lie packed in 32-bit registers, to exact pairs of 16-bit floats: what an mma takes.
//
// No conversion instruction is as fast as putting the code's bits into the mantissa of a constant and subtracting the
// constant: with u in the low bits of 0x6400 the f16 is 1024 + u, and of 0x4300 the bf16 is 128 + u (Kim et al.,
// "Who Says Elephants Can't Run", 2022). Each result below is exact.
#pragma once

#include <cuda_fp8.h>

#include <cstdint>
#include <cstring>

#include "kernels/common/half_ops.cuh"
#include "kernels/ptx/lop3.cuh"

namespace inferometer {

template <class T>
__device__ __forceinline__ typename HalfTraits<T>::Pair pair_of(std::uint32_t bits) {
  typename HalfTraits<T>::Pair pair;
  std::memcpy(&pair, &bits, sizeof(bits));
  return pair;
}

template <class Pair>
__device__ __forceinline__ std::uint32_t bits_of(Pair pair) {
  std::uint32_t bits;
  std::memcpy(&bits, &pair, sizeof(bits));
  return bits;
}

// The int8 in bytes kFirst and kSecond of `word`.
template <class T, int kFirst, int kSecond>
__device__ __forceinline__ std::uint32_t int8_pair(std::uint32_t word) {
  if constexpr (HalfTraits<T>::kDtype == Dtype::f16) {  // 1024 + (code + 128)
    const std::uint32_t biased = __byte_perm(word ^ 0x80808080U, 0x64646464U, 0x4040 | kSecond << 8 | kFirst);
    return bits_of(__hsub2(pair_of<T>(biased), pair_of<T>(0x64806480U)));
  } else {  // 128 + (code's low 7 bits) - (128, or 256 for a negative code)
    const std::uint32_t bytes = __byte_perm(word, 0, 0x4040 | kSecond << 8 | kFirst);
    return bits_of(__hsub2(pair_of<T>(and_or(bytes, 0x007f007fU, 0x43004300U)),
                           pair_of<T>(and_or(bytes, 0x00800080U, 0x43004300U))));
  }
}

// The FP8 E4M3 in bytes kFirst and kSecond of `word`.
template <class T, int kFirst, int kSecond>
__device__ __forceinline__ std::uint32_t e4m3_pair(std::uint32_t word) {
#if __CUDA_ARCH__ >= 890
  if constexpr (HalfTraits<T>::kDtype == Dtype::f16) {
    const auto codes = static_cast<__nv_fp8x2_storage_t>(__byte_perm(word, 0, 0x4400 | kSecond << 4 | kFirst));
    const __half2_raw pair = __nv_cvt_fp8x2_to_halfraw2(codes, __NV_E4M3);
    return std::uint32_t{pair.y} << 16 | pair.x;
  }
#endif
  // Exponent and mantissa moved to where the wider format has them; the exponents' biases (7, and 15 or 127) differ by
  // a factor of 2^8 or 2^120. Subnormal codes become subnormal numbers first and are exact too.
  const std::uint32_t bytes = __byte_perm(word, 0, 0x0404 | kSecond << 12 | kFirst << 4);
  constexpr bool kF16 = HalfTraits<T>::kDtype == Dtype::f16;
  const std::uint32_t moved = and_or(bytes, 0x80008000U, (bytes & 0x7f007f00U) >> (kF16 ? 1 : 4));
  return bits_of(__hmul2(pair_of<T>(moved), pair_of<T>(kF16 ? 0x5c005c00U : 0x7b807b80U)));
}

}  // namespace inferometer
