// Instantiates sm90_matmul_kernel on int8 for the tiles of kSm90Tiles that plans for int8 take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/matmul/sm90_matmul.cuh"
#include "kernels/matmul/sm90_tile_table.hpp"
#include "kernels/matmul/w8a8_kernels.hpp"
#include "kernels/matmul/w8a8_output.cuh"

namespace inferometer {

template <class T, class Tile>
const void* w8a8_kernel_of() {
  if constexpr (Tile::kTile.saves_power()) {
    return nullptr;
  } else {
    return reinterpret_cast<const void*>(
        &sm90_matmul_kernel<std::int8_t, Tile, ScaledOutput<T, Tile::kTile.weights_are_a>>);
  }
}

template <class T>
const void* w8a8_kernel_of_table(int tile) {
  static const auto kernels = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<const void*, sizeof...(kIndex)>{w8a8_kernel_of<T, Sm90TableTile<kIndex>>()...};
  }
  (std::make_index_sequence<kSm90Tiles.size()>{});
  return kernels.at(static_cast<std::size_t>(tile));
}

}  // namespace inferometer
