// The compile-time parameters of few_tokens_kernel, what a launch of it takes, and its shared memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "harness/operator/dtype.hpp"
#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_args.hpp"

namespace inferometer {

inline constexpr int kMostFewTokens = 16;

template <class T>
struct FewTokensArgs {
  PackedWeights weights;
  const T* x;  // [m, k]: also in the tensor map, boxes of all m rows, which is what is read unless sums overflow
  T* y;        // [m, n]
  int m;
  int n;
  int tiles;   // of 16 rows in a block
  int parts;   // blocks that share a block's rows, each with a part of k: a cluster where more than 1
  int stages;  // of a warp's ring
  // Known to the host, so that no thread divides before its first copy.
  int row_tiles;    // of W
  int slices;       // of W
  int part_slices;  // of each part ...
  int long_parts;   // ... and one more in so many, the first
  bool x_is_row;    // of whole slices: copied as it lies, without the tensor map, which copies would wait for at first

  FewTokensArgs(const PackedWeights& w, const T* from, T* to, int tokens, int block_tiles, int k_parts, int ring_stages)
      : weights(w),
        x(from),
        y(to),
        m(tokens),
        n(static_cast<int>(w.shape.n)),
        tiles(block_tiles),
        parts(k_parts),
        stages(ring_stages),
        row_tiles(static_cast<int>(w.shape.row_tiles())),
        slices(static_cast<int>(w.shape.slices())),
        part_slices(slices / k_parts),
        long_parts(slices % k_parts),
        x_is_row(tokens == 1 && w.shape.k % kSliceK == 0) {}
};

struct FewTokensShape {
  int token_tiles;  // of 8 tokens: 1 or 2

  static constexpr int kWarps = 16;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kMaxTiles = 8;   // registers: 64 sums a thread with two tiles of tokens
  static constexpr int kMaxStages = 8;  // more hold nothing that is not under way already

  INFEROMETER_HOST_DEVICE constexpr int tokens() const { return 8 * token_tiles; }
  // Of the tokens in one slice: a panel as the copy engine leaves it (common/wgmma_matrix.cuh).
  INFEROMETER_HOST_DEVICE constexpr int x_bytes() const { return tokens() * kSliceK * 2; }

  // Shared memory: each warp's stages of X, each warp's stages of weights, their barriers. `tile_bytes`: of a packed
  // tile.
  INFEROMETER_HOST_DEVICE constexpr int weights_at(int stages) const { return kWarps * stages * x_bytes(); }
  INFEROMETER_HOST_DEVICE constexpr int barriers_at(int tiles, int tile_bytes, int stages) const {
    return weights_at(stages) + kWarps * stages * tiles * tile_bytes;
  }
  INFEROMETER_HOST_DEVICE constexpr int rings_bytes(int tiles, int tile_bytes, int stages) const {
    return barriers_at(tiles, tile_bytes, stages) + kWarps * stages * 8;
  }

  // In place of the rings: sums of the warps, [warps, tokens, merge_stride] f32; four floats more than the rows put a
  // lane's neighbours in different banks. Behind them what other blocks of a cluster send.
  INFEROMETER_HOST_DEVICE constexpr int merge_stride(int tiles) const { return tiles * kTileRows + 4; }
  INFEROMETER_HOST_DEVICE constexpr int merge_bytes(int tiles) const {
    return kWarps * tokens() * merge_stride(tiles) * 4;
  }
  INFEROMETER_HOST_DEVICE static constexpr int inbox_bytes(int parts) { return parts == 1 ? 0 : parts * kThreads * 16; }

  constexpr int smem_bytes(int tiles, int tile_bytes, int parts, int stages) const {
    return std::max(rings_bytes(tiles, tile_bytes, stages), merge_bytes(tiles) + inbox_bytes(parts));
  }
  // The deepest ring that fits; 0: not even one stage does.
  constexpr int stages(int tiles, int tile_bytes, int parts, int limit_bytes) const {
    int stages = kMaxStages;
    while (stages > 0 && smem_bytes(tiles, tile_bytes, parts, stages) > limit_bytes) --stages;
    return stages;
  }
};

}  // namespace inferometer
