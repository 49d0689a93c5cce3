// The tiles of cuda.f16_sm90 and what they cost: measured on an H200, results/notes/matmul.md.
#pragma once

#include <array>

#include "kernels/matmul/sm90_tile.hpp"

namespace inferometer {

struct Sm90TileCost {
  Sm90Tile tile;
  double alone_ns;   // of one slice, in a block that has its SM to itself
  double shared_ns;  // of an SM's time per slice, with blocks_per_sm blocks on it
  double tile_ns;    // of the sums' way to Y, while which the tensor cores wait
  double part_ns;    // of one slice of a part
};

constexpr Sm90Tile sm90_direct_tile(int tile_b, int stages) {
  return {.weights_are_a = false, .tile_b = tile_b, .stages = stages, .blocks_per_sm = 1, .direct_stores = true};
}

constexpr Sm90Tile sm90_pair_tile(int tile_b, int stages) {
  Sm90Tile tile = sm90_direct_tile(tile_b, stages);
  tile.groups = 1;
  tile.pairs = true;
  return tile;
}

inline constexpr std::array kSm90Tiles = {
    // Few tokens: the time is W's way from memory. Two blocks an SM, so that one reads while the other begins or ends.
    Sm90TileCost{{.weights_are_a = true, .tile_b = 16, .stages = 6, .blocks_per_sm = 2}, 262, 235, 420, 0},
    Sm90TileCost{{.weights_are_a = true, .tile_b = 32, .stages = 5, .blocks_per_sm = 2}, 263, 263, 750, 0},
    Sm90TileCost{{.weights_are_a = true, .tile_b = 64, .stages = 4, .blocks_per_sm = 2}, 315, 248, 0, 0},
    // Small batches: whatever comes next above the number of tokens.
    Sm90TileCost{{.weights_are_a = true, .tile_b = 128, .stages = 6, .blocks_per_sm = 1}, 345, 345, 0, 0},
    Sm90TileCost{{.weights_are_a = true, .tile_b = 160, .stages = 5, .blocks_per_sm = 1}, 408, 408, 0, 0},
    Sm90TileCost{{.weights_are_a = true, .tile_b = 192, .stages = 5, .blocks_per_sm = 1}, 482, 482, 0, 0},
    // Prefill: the most products for each byte of shared memory, and narrower ones for what fills no wave of them.
    Sm90TileCost{{.weights_are_a = false, .tile_b = 128, .stages = 6, .blocks_per_sm = 1}, 308, 308, 1420, 287},
    Sm90TileCost{{.weights_are_a = false, .tile_b = 192, .stages = 4, .blocks_per_sm = 1}, 482, 482, 0, 287},
    Sm90TileCost{{.weights_are_a = false, .tile_b = 256, .stages = 4, .blocks_per_sm = 1}, 600, 600, 1750, 287},
    Sm90TileCost{{.weights_are_a = false, .tile_b = 320, .stages = 3, .blocks_per_sm = 1}, 780, 780, 1250, 460},
    // Large products: the fewest bytes from L2 for each product.
    Sm90TileCost{
        {.weights_are_a = false, .tile_b = 192, .stages = 3, .blocks_per_sm = 1, .rows_each = 2}, 872, 872, 2400, 482},
    // What makes one wave, or nearly two, of tiles with k whole: as many rows of W as share it out evenly.
    Sm90TileCost{sm90_direct_tile(80, 7), 251, 251, 800, 0},
    Sm90TileCost{sm90_direct_tile(96, 6), 271, 271, 800, 0},
    Sm90TileCost{sm90_direct_tile(224, 4), 540, 540, 1000, 0},
    Sm90TileCost{sm90_direct_tile(288, 3), 702, 702, 1150, 0},
    // Small products, 65 to 256 tokens: 64 rows of X, pairs of blocks.
    Sm90TileCost{sm90_pair_tile(64, 12), 168, 168, 600, 0},
    Sm90TileCost{sm90_pair_tile(96, 10), 185, 185, 600, 0},
    Sm90TileCost{sm90_pair_tile(128, 8), 195, 195, 600, 0},
};

template <int kIndex>
struct Sm90TableTile {
  static constexpr Sm90Tile kTile = kSm90Tiles[kIndex].tile;
};

// The same tile for a W stored [k, n].
template <int kIndex>
struct Sm90KnTile {
  static constexpr Sm90Tile kTile = [] {
    Sm90Tile tile = kSm90Tiles[kIndex].tile;
    tile.w_is_kn = true;
    return tile;
  }();
};

}  // namespace inferometer
