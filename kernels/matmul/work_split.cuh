// Which part of a product each block computes.
//
// Either every block computes one tile of Y, or, where tiles are few or do not fill the last wave, k is cut as well
// (Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU",
// PPoPP 2023): a column of tiles needs slices_per_tile slices of k, and all columns' slices, one column after the
// other, are dealt out evenly, wherever that begins and ends within columns. A share goes to a team of blocks, one for
// each tile of the column: they read the same part of W at the same time, once from memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "harness/operator/dtype.hpp"

namespace inferometer {

template <class Int>
struct TileIndex {
  Int m;
  Int n;
};

// Tile number `index` of tiles_m x tiles_n, column by column within bands of `band` rows of tiles. Blocks that run at
// the same time then share rows of X as well as rows of W, and L2 holds what they share: 132 tiles in a band of 12 read
// 23 panels, in row order up to 133. Int: 64-bit divisions take a GPU several times what 32-bit ones do.
template <class Int = std::int64_t>
INFEROMETER_HOST_DEVICE constexpr TileIndex<Int> tile_in_order(std::type_identity_t<Int> index,
                                                               std::type_identity_t<Int> tiles_m,
                                                               std::type_identity_t<Int> tiles_n,
                                                               std::type_identity_t<Int> band) {
  const Int first_m = index / (band * tiles_n) * band;
  const Int rows = tiles_m - first_m < band ? tiles_m - first_m : band;
  const Int in_band = index % (band * tiles_n);
  return {first_m + in_band % rows, in_band / rows};
}

// What one block does: in row `m` of tiles, slices [first, last) counted over all columns.
struct BlockWork {
  std::int64_t m;
  std::int64_t first;
  std::int64_t last;
};

struct WorkSplit {
  std::int64_t tiles_m;
  std::int64_t tiles_n;
  std::int64_t slices_per_tile;
  std::int64_t slices_per_block;  // slices_per_tile: whole tiles

  INFEROMETER_HOST_DEVICE constexpr bool shares_tiles() const { return slices_per_block != slices_per_tile; }
  INFEROMETER_HOST_DEVICE constexpr std::int64_t slices_of_row() const { return tiles_n * slices_per_tile; }
  INFEROMETER_HOST_DEVICE constexpr std::int64_t teams() const {
    return (slices_of_row() + slices_per_block - 1) / slices_per_block;
  }
  INFEROMETER_HOST_DEVICE constexpr std::int64_t blocks() const { return tiles_m * teams(); }

  // `band`: see tile_in_order; shared tiles are dealt out in one band, tiles_m <= band.
  INFEROMETER_HOST_DEVICE constexpr BlockWork work_of(std::int64_t block, std::int64_t band) const {
    if (!shares_tiles()) {
      const TileIndex<std::int64_t> tile = tile_in_order(block, tiles_m, tiles_n, band);
      return {tile.m, tile.n * slices_per_tile, (tile.n + 1) * slices_per_tile};
    }
    const std::int64_t first = block / tiles_m * slices_per_block;
    const std::int64_t last = first + slices_per_block;
    return {block % tiles_m, first, last < slices_of_row() ? last : slices_of_row()};
  }

  // The blocks that share tile (m, n): one of each team from first_team to last_team.
  INFEROMETER_HOST_DEVICE constexpr std::int64_t first_team(std::int64_t n) const {
    return n * slices_per_tile / slices_per_block;
  }
  INFEROMETER_HOST_DEVICE constexpr std::int64_t last_team(std::int64_t n) const {
    return ((n + 1) * slices_per_tile - 1) / slices_per_block;
  }
  // Where a team's block leaves its sums of a tile it shares. It shares at most two: the one it begins in and the one
  // it ends in.
  INFEROMETER_HOST_DEVICE constexpr std::int64_t slot(std::int64_t team, std::int64_t m, std::int64_t n) const {
    const bool begins_in_tile = team * slices_per_block >= n * slices_per_tile;
    return 2 * (team * tiles_m + m) + (begins_in_tile ? 0 : 1);
  }
  INFEROMETER_HOST_DEVICE constexpr std::int64_t slots() const { return 2 * blocks(); }
};

}  // namespace inferometer
