// The compile-time parameters of weight_only_wgmma_kernel, what a launch of it takes, and its shared memory.
#pragma once

#include <bit>
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
  int parts;        // blocks that share a tile, each with a part of k: a cluster where more than 1; a power of two
  // Known to the host, so that no thread divides before its first copy, or between its last product and its last store.
  int parts_log2;
  int tiles;             // of Y
  int slices;            // of W
  int part_slices;       // of each part ...
  int long_parts;        // ... and one more in so many, the first
  int weight_row_tiles;  // of W, 16 rows each
  int last_tokens;       // of the last tile of tokens: its box of X has no rows past the end

  WeightOnlyWgmmaArgs(const PackedWeights& w, T* to, int all_tokens, int block_row_tiles, int block_token_tiles,
                      int tile_tokens, int band, int k_parts)
      : weights(w),
        y(to),
        m(all_tokens),
        n(static_cast<int>(w.shape.n)),
        row_tiles(block_row_tiles),
        token_tiles(block_token_tiles),
        order_band(band),
        parts(k_parts),
        parts_log2(std::countr_zero(static_cast<unsigned>(k_parts))),
        tiles(block_row_tiles * block_token_tiles),
        slices(static_cast<int>(w.shape.slices())),
        part_slices(slices / k_parts),
        long_parts(slices % k_parts),
        weight_row_tiles(static_cast<int>(w.shape.row_tiles())),
        last_tokens(all_tokens - (block_token_tiles - 1) * tile_tokens) {}
};

struct WeightOnlyWgmmaShape {
  int bits;
  int tokens;  // of a tile: N of wgmma, a multiple of 32, or of 24
  int bands;   // of a tile, 64 rows each: 1 or 2; 2 from more than 128 tokens on

  static constexpr int kCopyWarps =
      4;  // take slices in turn: one alone is slower than the multiplication of few tokens
  static constexpr int kSmemBytes = 227 * 1024;  // that a block may have on sm_90

  // Warpgroups that multiply: of four, three hide what one waits for. Sums of more than 128 tokens leave registers for
  // two, whose products are long enough to convert under.
  INFEROMETER_HOST_DEVICE constexpr int consumers() const { return tokens > 128 ? 2 : 4; }
  INFEROMETER_HOST_DEVICE constexpr int threads() const { return consumers() * 128 + kCopyWarps * 32; }

  // Registers of a thread that multiplies: sums and fragments of 128 tokens need them all. Of the 96 that every thread
  // starts with (of 384 threads 168) the copying warps give up what makes these more.
  INFEROMETER_HOST_DEVICE constexpr int multiply_registers() const {
    return tokens > 128 ? 232 : tokens >= 96 ? 112 : 104;
  }
  INFEROMETER_HOST_DEVICE constexpr int copy_registers() const { return tokens > 128 ? 40 : tokens >= 96 ? 32 : 64; }

  // Warpgroups that share a band of the block: each takes every ways-th slice.
  INFEROMETER_HOST_DEVICE constexpr int ways() const { return consumers() / bands; }
  // A tile's tokens are cut into slabs of whole groups of 8. A slab of a band is a piece: what sharers of a tile, up to
  // kMaxParts blocks, exchange.
  static constexpr int kMaxParts = 4;
  INFEROMETER_HOST_DEVICE constexpr int slabs() const { return tokens % 32 == 0 ? 4 : 3; }
  INFEROMETER_HOST_DEVICE constexpr int slab_tokens() const { return tokens / slabs(); }

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
    return fit / kCopyWarps * kCopyWarps;  // so that a stage is always filled by the same warp
  }
  INFEROMETER_HOST_DEVICE constexpr int staged_at() const { return stages() * stage_bytes(); }
  INFEROMETER_HOST_DEVICE constexpr int barriers_at() const { return staged_at() + consumers() * staged_bytes(); }
  INFEROMETER_HOST_DEVICE constexpr int smem_bytes() const { return barriers_at() + 2 * stages() * 8; }

  // One thread's floats of a piece, and the bytes of a part of a piece.
  INFEROMETER_HOST_DEVICE constexpr int piece_floats() const { return slab_tokens() / 2; }
  INFEROMETER_HOST_DEVICE constexpr int part_bytes() const { return piece_floats() * 4 * 128; }
  // In place of the stages: what warpgroups of a block leave for one another, of each slab of each band all but one's,
  // then what other blocks of the cluster send. The more of them share a tile, the fewer of its up to four slabs are
  // this block's: two from one other, or one from three others.
  INFEROMETER_HOST_DEVICE constexpr int sent_at() const { return slabs() * bands * (ways() - 1) * part_bytes(); }
  INFEROMETER_HOST_DEVICE constexpr int exchange_bytes() const {
    return sent_at() + (kMaxParts - 1) * bands * part_bytes();
  }
};

}  // namespace inferometer
