// Who computes which part of a product in sm90_matmul_kernel.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"
#include "kernels/common/fast_divide.hpp"

namespace inferometer {

struct Sm90TileIndex {
  std::uint32_t a;
  std::uint32_t b;
};

// All tiles of a product, column by column within bands of rows of tiles: blocks that run at the same time then share
// rows of A as well as of B, and L2 holds what they share.
class Sm90TileOrder {
 public:
  Sm90TileOrder() = default;
  // tiles_a, tiles_b and rows (of tiles in a band, at most tiles_a) at least 1; below 2^31 tiles. Host only.
  Sm90TileOrder(std::uint32_t tiles_a, std::uint32_t tiles_b, std::uint32_t rows)
      : tiles_(tiles_a * tiles_b),
        last_band_((tiles_a - 1) / rows),
        of_band_(rows * tiles_b),
        rows_(rows),
        last_rows_(tiles_a - last_band_ * rows) {}

  INFEROMETER_HOST_DEVICE std::uint32_t tiles() const { return tiles_; }

  INFEROMETER_HOST_DEVICE Sm90TileIndex operator[](std::uint32_t tile) const {
    const std::uint32_t band = of_band_.quotient(tile);
    const std::uint32_t in_band = tile - band * of_band_.divisor();
    const FastDivide& rows = band == last_band_ ? last_rows_ : rows_;
    const std::uint32_t b = rows.quotient(in_band);
    return {band * rows_.divisor() + in_band - b * rows.divisor(), b};
  }

 private:
  std::uint32_t tiles_ = 1;
  std::uint32_t last_band_ = 0;
  FastDivide of_band_;  // tiles
  FastDivide rows_;
  FastDivide last_rows_;
};

// Who computes what. Tile by tile, each by one block: the first `whole` of them, then the parts of the others, so that
// the last blocks end with small pieces. Or, once around, each tile by a cluster of `split` blocks that share out its
// slices of k.
struct Sm90Work {
  Sm90TileOrder order;
  std::uint32_t whole = 1;        // tiles; the others come in parts (sm90_tile.hpp)
  std::uint32_t split = 1;        // blocks a tile
  std::uint32_t slices = 1;       // of k for each block ...
  std::uint32_t long_blocks = 0;  // ... and one more for so many blocks of a cluster

  // Of `parts` parts a tile.
  INFEROMETER_HOST_DEVICE std::uint32_t pieces(std::uint32_t parts) const {
    return whole + (order.tiles() - whole) * parts;
  }
  INFEROMETER_HOST_DEVICE std::uint32_t first_slice(std::uint32_t rank) const {
    return rank * slices + (rank < long_blocks ? rank : long_blocks);
  }
  INFEROMETER_HOST_DEVICE std::uint32_t slices_of(std::uint32_t rank) const {
    return slices + (rank < long_blocks ? 1 : 0);
  }
};

// Of a tile that is split: how many groups of 8 columns of its sums each block of the cluster adds up; the last blocks
// add up fewer, or none, where they are not a multiple.
INFEROMETER_HOST_DEVICE constexpr std::uint32_t sm90_own_groups(std::uint32_t sum_groups, std::uint32_t split) {
  return (sum_groups + split - 1) / split;
}

// Where a tile, or a part of one, begins.
struct Sm90Origin {
  std::uint32_t a;  // row of A
  std::uint32_t b;  // row of B
};

}  // namespace inferometer
