// Instantiates mma_matmul_kernel for every shape of kTileTable.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "kernels/matmul/mma_kernels.hpp"
#include "kernels/matmul/mma_matmul.cuh"
#include "kernels/matmul/tile_table.hpp"

namespace inferometer {

template <class T, template <int> class TileOf = TableTile>
MmaKernel<T> mma_kernel_of_table(int shape) {
  static const auto kernels = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<MmaKernel<T>, sizeof...(kIndex)>{&mma_matmul_kernel<T, TileOf<kIndex>>...};
  }
  (std::make_index_sequence<kTileTable.size()>{});
  return kernels.at(static_cast<std::size_t>(shape));
}

}  // namespace inferometer
