// Which part of a product each block computes.
//
// Work is counted in slices of k, tile after tile. Every block takes the same number of consecutive slices: a whole
// tile, or, where tiles are few or do not fill the last wave, a share that may begin and end within tiles (Osama et
// al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU", PPoPP 2023).
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct WorkSplit {
  std::int64_t tiles;
  std::int64_t slices_per_tile;
  std::int64_t slices_per_block;

  INFEROMETER_HOST_DEVICE constexpr std::int64_t slices() const { return tiles * slices_per_tile; }
  INFEROMETER_HOST_DEVICE constexpr std::int64_t blocks() const {
    return (slices() + slices_per_block - 1) / slices_per_block;
  }
  // Whether some tile is the sum of several blocks' work.
  INFEROMETER_HOST_DEVICE constexpr bool shares_tiles() const { return slices_per_block % slices_per_tile != 0; }

  INFEROMETER_HOST_DEVICE constexpr std::int64_t first_block(std::int64_t tile) const {
    return tile * slices_per_tile / slices_per_block;
  }
  INFEROMETER_HOST_DEVICE constexpr std::int64_t last_block(std::int64_t tile) const {
    return ((tile + 1) * slices_per_tile - 1) / slices_per_block;
  }
  // Where a block leaves its sums of a tile it shares. It shares at most two: the one it begins in and the one it ends
  // in.
  INFEROMETER_HOST_DEVICE constexpr std::int64_t slot(std::int64_t block, std::int64_t tile) const {
    const bool begins_in_tile = block * slices_per_block >= tile * slices_per_tile;
    return 2 * block + (begins_in_tile ? 0 : 1);
  }
  INFEROMETER_HOST_DEVICE constexpr std::int64_t slots() const { return 2 * blocks(); }
};

struct TileIndex {
  std::int64_t m;
  std::int64_t n;
};

// Tile number `index` of tiles_m x tiles_n, column by column within bands of `band` rows of tiles. Blocks that run at
// the same time then share rows of X as well as rows of W, and L2 holds what they share: 132 tiles in a band of 12 read
// 23 panels, in row order up to 133.
INFEROMETER_HOST_DEVICE constexpr TileIndex tile_in_order(std::int64_t index, std::int64_t tiles_m,
                                                          std::int64_t tiles_n, std::int64_t band) {
  const std::int64_t first_m = index / (band * tiles_n) * band;
  const std::int64_t rows = tiles_m - first_m < band ? tiles_m - first_m : band;
  const std::int64_t in_band = index % (band * tiles_n);
  return {first_m + in_band % rows, in_band / rows};
}

}  // namespace inferometer
