// The compiled kernels of cuda.w8a8, one for each tile of kSm90Tiles.
#pragma once

namespace inferometer {

// sm90_matmul_kernel<std::int8_t, Sm90TableTile<tile>, ScaledOutput<T, ...>>, whose second parameter is an
// OutputScales<T>. T is __half (w8a8_kernels_f16.cu) or __nv_bfloat16 (w8a8_kernels_bf16.cu): two files, to compile
// side by side.
template <class T>
const void* w8a8_kernel(int tile);

}  // namespace inferometer
