// Instantiates the weight-only kernels for one type and bit width.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "kernels/matmul/weight_only_few_tokens.cuh"
#include "kernels/matmul/weight_only_kernels.hpp"
#include "kernels/matmul/weight_only_wgmma.cuh"

namespace inferometer {

template <class T, int kBits>
FewTokensKernel<T> few_tokens_kernel_of_table(bool plain, int token_tiles, int tiles) {
  constexpr int kMost = FewTokensShape::kMaxTiles;
  if (!plain)
    return token_tiles == 1 ? &few_tokens_kernel<T, kBits, false, 1, kMost>
                            : &few_tokens_kernel<T, kBits, false, 2, kMost>;
  if (token_tiles == 1) return &few_tokens_kernel<T, kBits, true, 1, kMost>;
  return tiles <= kMost / 2 ? &few_tokens_kernel<T, kBits, true, 2, kMost / 2>
                            : &few_tokens_kernel<T, kBits, true, 2, kMost>;
}

template <class T, int kBits, bool kPlain, bool kGated = false>
WeightOnlyWgmmaKernel<T> weight_only_wgmma_kernel_of_table(int shape) {
  static const auto kernels = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<WeightOnlyWgmmaKernel<T>, sizeof...(kIndex)>{
        &weight_only_wgmma_kernel<T, kBits, kPlain, kWeightOnlyTiles[kIndex].tokens, kWeightOnlyTiles[kIndex].bands,
                                  kGated>...};
  }
  (std::make_index_sequence<kWeightOnlyTiles.size()>{});
  return kernels.at(static_cast<std::size_t>(shape));
}

// The same with another end (product_ends.hpp), for the plain format.
template <int kBits, class End>
FewTokensKernel<__half, End> few_tokens_kernel_with_end(int token_tiles, int tiles) {
  constexpr int kMost = FewTokensShape::kMaxTiles;
  if (token_tiles == 1) return &few_tokens_kernel<__half, kBits, true, 1, kMost, End>;
  return tiles <= kMost / 2 ? &few_tokens_kernel<__half, kBits, true, 2, kMost / 2, End>
                            : &few_tokens_kernel<__half, kBits, true, 2, kMost, End>;
}

}  // namespace inferometer

// At the end of a file of namespace inferometer.
#define INFEROMETER_WEIGHT_ONLY_KERNELS(T, kBits)                                              \
  template <>                                                                                  \
  FewTokensKernel<T> few_tokens_kernel_for<T, kBits>(bool plain, int token_tiles, int tiles) { \
    return few_tokens_kernel_of_table<T, kBits>(plain, token_tiles, tiles);                    \
  }                                                                                            \
  template <>                                                                                  \
  WeightOnlyWgmmaKernel<T> weight_only_wgmma_kernel_for<T, kBits>(bool plain, int shape) {     \
    return plain ? weight_only_wgmma_kernel_of_table<T, kBits, true>(shape)                    \
                 : weight_only_wgmma_kernel_of_table<T, kBits, false>(shape);                  \
  }

// The same for products with other ends.
#define INFEROMETER_WEIGHT_ONLY_ENDS(kBits)                                                            \
  template <>                                                                                          \
  FewTokensKernel<__half, GatedEnd> gated_few_tokens_kernel<kBits>(int token_tiles, int tiles) {       \
    return few_tokens_kernel_with_end<kBits, GatedEnd>(token_tiles, tiles);                            \
  }                                                                                                    \
  template <>                                                                                          \
  FewTokensKernel<__half, ResidualEnd> residual_few_tokens_kernel<kBits>(int token_tiles, int tiles) { \
    return few_tokens_kernel_with_end<kBits, ResidualEnd>(token_tiles, tiles);                         \
  }                                                                                                    \
  template <>                                                                                          \
  WeightOnlyWgmmaKernel<__half> gated_weight_only_wgmma_kernel<kBits>(int shape) {                     \
    return weight_only_wgmma_kernel_of_table<__half, kBits, true, true>(shape);                        \
  }
