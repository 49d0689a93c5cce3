// The compiled kernels of cuda.w8a8, one for each tile of kSm90Tiles.
#pragma once

#include <cstdint>

namespace inferometer {

// Their second parameter; the same bytes for both derived types.
template <class T>
struct OutputScales {
  const float* of_tokens;  // [m], readable up to an even number
  const T* of_features;    // [n]
  std::uint32_t m;
  std::uint32_t n;
};

// sm90_matmul_kernel<std::int8_t, Sm90TableTile<tile>, ScaledOutput<T, ...>>; null for tiles that plans for int8 do not
// take. T is __half (w8a8_kernels_f16.cu) or __nv_bfloat16 (w8a8_kernels_bf16.cu): two files, to compile side by side.
template <class T>
const void* w8a8_kernel(int tile);

}  // namespace inferometer
