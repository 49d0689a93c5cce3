// The tile shapes of cuda.f16_sm80 and what they cost: measured on an H200, results/notes/matmul.md. Other GPUs choose
// from the same figures; what counts is their proportion.
#pragma once

#include <array>

#include "kernels/matmul/tile_shape.cuh"

namespace inferometer {

struct TileCost {
  TileShape shape;
  double alone_ns;   // of one slice, in a block that has its SM to itself
  double shared_ns;  // of an SM's time per slice, with blocks_per_sm blocks on it
};

inline constexpr std::array kTileTable = {
    // Decode. The time is W's way from memory: six stages keep enough of it under way, and narrow tiles make many
    // blocks.
    TileCost{{.tile_m = 16, .tile_n = 64, .warps_m = 1, .warps_n = 4, .stages = 6, .blocks_per_sm = 2}, 245, 175},
    // The same with 32 tokens; a wider tile, because X's part of every slice has doubled.
    TileCost{{.tile_m = 32, .tile_n = 128, .warps_m = 1, .warps_n = 4, .stages = 4, .blocks_per_sm = 2}, 360, 315},
    // Small batches, and few tiles: 1024 x 1024 still makes 128 of them.
    TileCost{{.tile_m = 64, .tile_n = 128, .warps_m = 2, .warps_n = 2, .stages = 4, .blocks_per_sm = 2}, 535, 455},
    // Between 64 and 128 tokens, and multiples: without these two, one token more costs nearly half more time. The
    // narrow
    // one where many blocks would share each of the few wide tiles.
    TileCost{{.tile_m = 96, .tile_n = 128, .warps_m = 2, .warps_n = 2, .stages = 3, .blocks_per_sm = 2}, 665, 540},
    TileCost{{.tile_m = 96, .tile_n = 256, .warps_m = 2, .warps_n = 4, .stages = 3, .blocks_per_sm = 1}, 1025, 1025},
    // The largest whose warps, of 64 x 64, still hold two steps' fragments in registers: the fewest bytes of shared
    // memory
    // and of L2 for each product.
    TileCost{{.tile_m = 128, .tile_n = 256, .warps_m = 2, .warps_n = 4, .stages = 3, .blocks_per_sm = 1}, 1140, 1140},
};

template <int kIndex>
struct TableTile {
  static constexpr TileShape kShape = kTileTable[kIndex].shape;
};

// The same shape for a W stored [k, n].
template <int kIndex>
struct KnTableTile {
  static constexpr TileShape kShape = [] {
    TileShape shape = kTileTable[kIndex].shape;
    shape.w_is_kn = true;
    return shape;
  }();
};

}  // namespace inferometer
