// The compile-time parameters of weight_only_wgmma_kernel, what a launch of it takes, and its shared memory.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"
#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_args.hpp"

namespace inferometer {

template <class T>
struct WeightOnlyWgmmaArgs {
  PackedWeights weights;
  T* y;  // [m, n]
  int m;
  int n;
  int row_tiles;    // of the shape's bands
  int token_tiles;  // of the shape's tokens
  int order_band;   // tiles of tokens that run side by side: tile_in_order
  int parts;        // blocks that share a tile, each with a part of k: a cluster where more than 1
};

// How weight_only_wgmma_kernel is compiled. Its template takes the code.
struct WeightOnlyWgmmaOptions {
  bool home = false;  // what a warpgroup adds up itself stays in its registers instead of going where the rest does
  bool dependent = false;  // FewTokensOptions
  int ahead = 0;           // slices of W that the L2 is asked for before their stages are free; 0: none
  int warpgroups = 0;      // that multiply, 5 for one band of 32 tokens; 0: as the tile has them

  INFEROMETER_HOST_DEVICE constexpr int code() const {
    return (home ? 1 : 0) + (dependent ? 2 : 0) + 4 * warpgroups + 256 * ahead;
  }
  INFEROMETER_HOST_DEVICE static constexpr WeightOnlyWgmmaOptions of(int code) {
    return {.home = code % 2 == 1, .dependent = code / 2 % 2 == 1, .ahead = code / 256, .warpgroups = code / 4 % 64};
  }
};

struct WeightOnlyWgmmaShape {
  int bits;
  int tokens;          // of a tile: N of wgmma, a multiple of 32, or of 24; 256 with two bands
  int bands;           // of a tile, 64 rows each: 1, 2 or 4
  int warpgroups = 0;  // WeightOnlyWgmmaOptions

  static constexpr int kConsumers = 4;  // warpgroups that multiply, so that three hide what one waits for
  static constexpr int kCopyWarps =
      4;  // take slices in turn: one alone is slower than the multiplication of few tokens
  static constexpr int kThreads = kConsumers * 128 + kCopyWarps * 32;
  static constexpr int kSmemBytes = 227 * 1024;  // that a block may have on sm_90

  // Registers of a thread that multiplies: sums and fragments of 128 tokens need them all. Of the 96 that every thread
  // starts with (of 768 threads 80, of 384 168) the copying warps give up what makes these more.
  INFEROMETER_HOST_DEVICE constexpr int multiply_registers() const {
    return warpgroups == 5 ? 88 : tokens > 128 ? 232 : tokens >= 96 ? 112 : 104;
  }
  INFEROMETER_HOST_DEVICE constexpr int copy_registers() const {
    return warpgroups == 5 ? 40 : tokens > 128 ? 40 : tokens >= 96 ? 32 : 64;
  }

  // Sums of 256 tokens leave registers for two.
  INFEROMETER_HOST_DEVICE constexpr int consumers() const {
    return warpgroups > 0 ? warpgroups : tokens > 128 ? 2 : kConsumers;
  }
  INFEROMETER_HOST_DEVICE constexpr int threads() const { return consumers() * 128 + kCopyWarps * 32; }

  // Warpgroups that share a band of the block: each takes every ways-th slice.
  INFEROMETER_HOST_DEVICE constexpr int ways() const { return consumers() / bands; }
  // A tile's tokens are cut into slabs of whole groups of 8. A slab of a band is a piece: what sharers of a tile
  // exchange.
  INFEROMETER_HOST_DEVICE constexpr int slabs() const { return tokens % 32 == 0 ? 4 : 3; }
  INFEROMETER_HOST_DEVICE constexpr int slab_tokens() const { return tokens / slabs(); }
  INFEROMETER_HOST_DEVICE constexpr int pieces() const { return bands * slabs(); }
  INFEROMETER_HOST_DEVICE constexpr int max_parts() const { return pieces(); }

  // A stage: X [tokens, 64], then the packed tiles, as large as they may be: two groups, and zero points.
  INFEROMETER_HOST_DEVICE constexpr int x_bytes() const { return tokens * kSliceK * 2; }
  INFEROMETER_HOST_DEVICE constexpr int stage_bytes() const {
    const int tile_bytes = kTileRows * kSliceK * bits / 8 + 2 * kTileRows * 3;
    return (x_bytes() + bands * kBandTiles * tile_bytes + 1023) / 1024 * 1024;
  }

  // Behind the stages the barriers, and what each warpgroup stages of Y: a piece [slab_tokens, 64]. As many stages as
  // fit.
  INFEROMETER_HOST_DEVICE constexpr int staged_bytes() const { return slab_tokens() * kBandRows * 2; }
  INFEROMETER_HOST_DEVICE constexpr int stages() const {
    const int fit = (kSmemBytes - consumers() * staged_bytes()) / (stage_bytes() + 16);
    const int stride =
        ways() == 5 ? 5 * kCopyWarps : kCopyWarps;  // so that a stage is always filled and read by the same warps
    return fit / stride * stride;
  }
  INFEROMETER_HOST_DEVICE constexpr int staged_at() const { return stages() * stage_bytes(); }
  INFEROMETER_HOST_DEVICE constexpr int barriers_at() const { return staged_at() + consumers() * staged_bytes(); }
  INFEROMETER_HOST_DEVICE constexpr int smem_bytes() const { return barriers_at() + 2 * stages() * 8; }

  // One thread's floats of a piece, and the bytes of a part of a piece.
  INFEROMETER_HOST_DEVICE constexpr int piece_floats() const { return slab_tokens() / 2; }
  INFEROMETER_HOST_DEVICE constexpr int part_bytes() const { return piece_floats() * 4 * 128; }
};

}  // namespace inferometer
