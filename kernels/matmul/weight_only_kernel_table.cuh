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

template <class T, int kBits, bool kPlain>
WeightOnlyWgmmaKernel<T> weight_only_wgmma_kernel_of_table(int shape) {
  static const auto kernels = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<WeightOnlyWgmmaKernel<T>, sizeof...(kIndex)>{
        &weight_only_wgmma_kernel<T, kBits, kPlain, kWeightOnlyTiles[kIndex].tokens,
                                  kWeightOnlyTiles[kIndex].bands>...};
  }
  (std::make_index_sequence<kWeightOnlyTiles.size()>{});
  return kernels.at(static_cast<std::size_t>(shape));
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
