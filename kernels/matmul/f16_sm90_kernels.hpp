// The compiled kernels of cuda.f16_sm90, one for each tile of kSm90Tiles.
#pragma once

#include "harness/operator/dtype.hpp"

namespace inferometer {

// sm90_matmul_kernel<T, Sm90TableTile<tile>, RoundedOutput<T>>, for launch_sm90. T is __half
// (f16_sm90_kernels_f16.cu) or __nv_bfloat16 (f16_sm90_kernels_bf16.cu): two files, to compile side by side.
template <class T>
const void* f16_sm90_kernel(int tile);

// The same with GatedEnd, f16, and with ResidualEnd, of tiles that have_late_norm() (f16_sm90_kernels_ends.cu).
const void* gated_f16_sm90_kernel(int tile);
const void* residual_f16_sm90_kernel(int tile);

// The first by the dtype of X, W and Y: f16 or bf16.
const void* f16_sm90_kernel(Dtype dtype, int tile);

}  // namespace inferometer
