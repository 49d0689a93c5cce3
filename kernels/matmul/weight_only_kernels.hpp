// The compiled kernels of cuda.w4a16 and cuda.w8a16. T is the type of X and Y, kBits that of a code: one file for each
// pair (weight_only_kernels_*.cu), to compile side by side.
#pragma once

#include <cuda.h>
#include <cuda_fp16.h>

#include "kernels/matmul/product_ends.hpp"
#include "kernels/matmul/weight_only_few_tokens_shape.hpp"
#include "kernels/matmul/weight_only_plan.hpp"
#include "kernels/matmul/weight_only_wgmma_maps.hpp"
#include "kernels/matmul/weight_only_wgmma_shape.hpp"

namespace inferometer {

template <class T, class End = RoundedEnd>
using FewTokensKernel = void (*)(FewTokensArgs<T>, CUtensorMap, End);
template <class T>
using WeightOnlyWgmmaKernel = void (*)(WeightOnlyWgmmaArgs<T>, WeightOnlyWgmmaX);

// `plain`: PackedShape::is_plain(). `tiles`: of rows in a block.
template <class T, int kBits>
FewTokensKernel<T> few_tokens_kernel_for(bool plain, int token_tiles, int tiles);
// `shape`: in kWeightOnlyTiles.
template <class T, int kBits>
WeightOnlyWgmmaKernel<T> weight_only_wgmma_kernel_for(bool plain, int shape);

// Of products with another end (product_ends.hpp), for the plain format.
template <int kBits>
FewTokensKernel<__half, GatedEnd> gated_few_tokens_kernel(int token_tiles, int tiles);
template <int kBits>
FewTokensKernel<__half, ResidualEnd> residual_few_tokens_kernel(int token_tiles, int tiles);
template <int kBits>
WeightOnlyWgmmaKernel<__half> gated_weight_only_wgmma_kernel(int shape);

}  // namespace inferometer
