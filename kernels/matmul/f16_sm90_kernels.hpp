// The compiled kernels of cuda.f16_sm90, one for each tile of kSm90Tiles.
#pragma once

#include "harness/operator/dtype.hpp"

namespace inferometer {

// sm90_matmul_kernel<T, Sm90TableTile<tile>, RoundedOutput<T>>, for launch_sm90. T is __half
// (f16_sm90_kernels_f16.cu) or __nv_bfloat16 (f16_sm90_kernels_bf16.cu): two files, to compile side by side.
template <class T>
const void* f16_sm90_kernel(int tile);

// The same for W stored [k, n], of Sm90KnTile<tile>; null for tiles that cannot be so (f16_sm90_kernels_kn_f16.cu and
// f16_sm90_kernels_kn_bf16.cu).
template <class T>
const void* f16_sm90_kn_kernel(int tile);

// The first with GatedEnd, f16, and with ResidualEnd, of tiles that have_late_norm() (f16_sm90_kernels_ends.cu).
const void* gated_f16_sm90_kernel(int tile);
const void* residual_f16_sm90_kernel(int tile);

// The first, or with `w_is_kn` the second, by the dtype of X, W and Y: f16 or bf16.
const void* f16_sm90_kernel(Dtype dtype, bool w_is_kn, int tile);

}  // namespace inferometer
