// Instantiates sm90_matmul_kernel for every tile of kSm90Tiles, or, of W stored [k, n], those that can_be_kn().
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "kernels/matmul/f16_sm90_kernels.hpp"
#include "kernels/matmul/sm90_matmul.cuh"
#include "kernels/matmul/sm90_tile_table.hpp"

namespace inferometer {

template <class T, class Tile, class Output>
const void* f16_sm90_kernel_of() {
  if constexpr (Tile::kTile.w_is_kn && !Tile::kTile.can_be_kn()) {
    return nullptr;
  } else {
    return reinterpret_cast<const void*>(&sm90_matmul_kernel<T, Tile, Output>);
  }
}

template <class T, class Output = RoundedOutput<T>, template <int> class TileOf = Sm90TableTile>
const void* f16_sm90_kernel_of_table(int tile) {
  static const auto kernels = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<const void*, sizeof...(kIndex)>{f16_sm90_kernel_of<T, TileOf<kIndex>, Output>()...};
  }
  (std::make_index_sequence<kSm90Tiles.size()>{});
  return kernels.at(static_cast<std::size_t>(tile));
}

}  // namespace inferometer
