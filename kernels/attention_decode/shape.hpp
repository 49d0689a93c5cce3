// Tile sizes of the decode kernel, by head dimension and rows.
#pragma once

#include "kernels/attention_decode/partition.hpp"
#include "kernels/common/swizzled_tile.cuh"

namespace inferometer::decode {

// Most dynamic shared memory of one block: two fit an SM of sm_90 (228 KiB with 1 KiB kept of each block); one alone
// fits sm_80 (163 KiB).
inline constexpr int kHalfSmBytes = 113 * 1024;
inline constexpr int kWholeBlockBytes = 163 * 1024;

template <int kHeadDim_, int kRowTiles_>
struct Shape {
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kRowTiles = kRowTiles_;      // of 8 query rows
  static constexpr int kBlockRows = 8 * kRowTiles;  // query rows of a block
  static constexpr int kWarps = 4;
  static constexpr int kBlocksPerSm = kHeadDim > 192 ? 1 : 2;
  static constexpr int kThreads = 32 * kWarps;
  // Rows of whole 128-byte lines, their chunks XOR-swizzled within a line: a line of global memory then lands in one
  // line of shared memory, and cp.async.cg fetches it with one request. Rows padded to other strides cost 1.75 times
  // the requests and a fifth of the bandwidth (results/notes/decode.md).
  using Tile = SwizzledTile<(kHeadDim + 63) / 64 * 64>;
  static constexpr int kTileBytes = kTileKeys * Tile::kRowBytes;
  static constexpr int kStageBytes = 2 * kTileBytes;  // K, then V
  static constexpr int kStages = (kBlocksPerSm == 2 ? kHalfSmBytes : kWholeBlockBytes) / (kWarps * kStageBytes);
  static constexpr int kRingBytes = kWarps * kStages * kStageBytes;

  // After the loop the same memory holds every warp's O, padded so that the four rows a warp stores at once lie in
  // different banks, and then every warp's softmax states.
  static constexpr int kMergeStride = kHeadDim + 4;
  static constexpr int kMergeStatesAt = kWarps * kBlockRows * kMergeStride * 4;
  static constexpr int kMergeBytes = kMergeStatesAt + kWarps * kBlockRows * 8;
  static constexpr int kSharedBytes = kRingBytes > kMergeBytes ? kRingBytes : kMergeBytes;
  static_assert(kStages >= 2, "one tile in flight while another is multiplied");
};

}  // namespace inferometer::decode
