// The compiled kernels of cuda.f16_sm80, one for each shape of kTileTable.
#pragma once

#include "kernels/matmul/mma_args.hpp"

namespace inferometer {

template <class T>
using MmaKernel = void (*)(MmaMatmulArgs<T>);

// T is __half (mma_kernels_f16.cu) or __nv_bfloat16 (mma_kernels_bf16.cu): two files, to compile side by side.
template <class T>
MmaKernel<T> mma_kernel(int shape);

// The same for W stored [k, n] (mma_kernels_kn_f16.cu and mma_kernels_kn_bf16.cu).
template <class T>
MmaKernel<T> mma_kn_kernel(int shape);

}  // namespace inferometer
