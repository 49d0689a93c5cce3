// The compiled kernels of cuda.w4a16 and cuda.w8a16. T is the type of X and Y, kBits that of a code: one file for each
// pair (weight_only_kernels_*.cu), to compile side by side.
#pragma once

#include <cuda.h>

#include "kernels/matmul/weight_only_few_tokens_shape.hpp"
#include "kernels/matmul/weight_only_plan.hpp"
#include "kernels/matmul/weight_only_wgmma_maps.hpp"
#include "kernels/matmul/weight_only_wgmma_shape.hpp"

namespace inferometer {

template <class T>
using FewTokensKernel = void (*)(FewTokensArgs<T>, CUtensorMap);
template <class T>
using WeightOnlyWgmmaKernel = void (*)(WeightOnlyWgmmaArgs<T>, WeightOnlyWgmmaX);

// `plain`: PackedShape::is_plain(). `tiles`: of rows in a block.
template <class T, int kBits>
FewTokensKernel<T> few_tokens_kernel_for(bool plain, int token_tiles, int tiles);
// `shape`: in kWeightOnlyTiles.
template <class T, int kBits>
WeightOnlyWgmmaKernel<T> weight_only_wgmma_kernel_for(bool plain, int shape);

}  // namespace inferometer
