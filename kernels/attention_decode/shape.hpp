// Tile sizes of the decode kernel, by storage format, head dimension, rows and warps.
#pragma once

#include "kernels/attention_decode/partition.hpp"
#include "kernels/common/swizzled_tile.cuh"

namespace inferometer::decode {

// Shared memory of an SM of sm_90, of which each block takes 1 KiB for itself. On sm_80 (164 KiB) fewer blocks fit.
inline constexpr int kSmBytes = 228 * 1024;

// Blocks of the largest cluster that every GPU with clusters runs.
inline constexpr int kMostClusterParts = 8;

// Blocks that share an SM, in narrow form: 4 warps each. Codes take arithmetic to unpack, and warps to hide it; 16-bit
// caches only need bytes in flight.
constexpr int narrow_blocks_per_sm(int kv_bits, int head_dim, int row_tiles) {
  if (kv_bits == 16) return head_dim > 192 ? 1 : 2;
  return kv_bits == 4 && head_dim <= 128 && row_tiles == 1 ? 4 : head_dim > 192 ? 1 : 2;
}

// The wide form: one block of 8 warps an SM, with as many bytes in flight and half the blocks to merge.
constexpr bool has_wide_form(int head_dim) { return head_dim <= 128; }

// Rows of the tile start at multiples of whole 128-byte lines, or fill one together: the next power of two.
constexpr int tile_pitch(int row_bytes) {
  int pitch = 32;
  while (pitch < row_bytes && pitch < 128) pitch *= 2;
  return pitch < 128 ? pitch : (row_bytes + 127) / 128 * 128;
}

// kGrouped: a row of codes has more than one scale for K, and for V.
template <class Format_, int kHeadDim_, int kRowTiles_, bool kWide, bool kGrouped_ = false>
struct Shape {
  using Format = Format_;
  static constexpr bool kGrouped = kGrouped_;
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kSteps = kHeadDim / 16;
  static constexpr int kRowTiles = kRowTiles_;      // of 8 query rows
  static constexpr int kBlockRows = 8 * kRowTiles;  // query rows of a block
  static constexpr int kWarps = kWide ? 8 : 4;
  static constexpr int kBlocksPerSm = kWide ? 1 : narrow_blocks_per_sm(Format::kBits, kHeadDim, kRowTiles);
  static constexpr int kThreads = 32 * kWarps;
  static constexpr bool kScaled = Format::kBits < 16;

  // Rows of whole 128-byte lines, their chunks XOR-swizzled within a line: a line of global memory then lands in one
  // line of shared memory, and cp.async.cg fetches it with one request. Rows padded to other strides cost 1.75 times
  // the requests and a fifth of the bandwidth (results/notes/decode.md).
  static constexpr int kRowBytes = kHeadDim * Format::kBits / 8;
  static constexpr int kRowChunks = kRowBytes / 16;
  using Tile = SwizzledTile<tile_pitch(kRowBytes) / 2>;
  // Of 16 keys in a tile. Short rows of codes come in pairs, so that a tile's fixed costs serve twice the keys.
  static constexpr int kKeyTiles = kScaled && Tile::kRowBytes <= 128 ? 2 : 1;
  static constexpr int kTileKeys = 16 * kKeyTiles;
  static constexpr int kTileBytes = kTileKeys * Tile::kRowBytes;
  // A pair of scales, K's and V's, for each key and group of at least 32 dimensions.
  static constexpr int kMostGroups = kGrouped ? kHeadDim / 32 : kScaled ? 1 : 0;
  static constexpr int kScalesAt = 2 * kTileBytes;                            // after K and V
  static constexpr int kEntriesAt = kScalesAt + kTileKeys * kMostGroups * 4;  // of the block table, one a lane
  static constexpr int kStageBytes = (kEntriesAt + 32 * 4 + 127) / 128 * 128;

  // What the blocks of a cluster send each other: their parts of O for the rows that a block merges, and their states.
  static constexpr int kInboxOutputBytes = kBlockRows * kHeadDim * 4 + kMostClusterParts * 16;
  static constexpr int kInboxBytes = kInboxOutputBytes + kMostClusterParts * kBlockRows * 8;

  // As many stages as fit. Blocks in a cluster have an SM each (decode_plan.cpp), so where several share one, none
  // needs the inbox.
  static constexpr int kStages =
      (kSmBytes / kBlocksPerSm - 1024 - (kBlocksPerSm == 1 ? kInboxBytes : 0)) / (kWarps * kStageBytes);
  static constexpr int kRingBytes = kWarps * kStages * kStageBytes;
  static_assert(kStages >= 2, "one tile in flight while another is multiplied");
  static_assert(kRowBytes % 16 == 0 && kPartKeys % kTileKeys == 0);

  // After the loop the ring holds every warp's O, padded so that the four rows a warp stores at once lie in different
  // banks, and then every warp's softmax states.
  static constexpr int kMergeStride = kHeadDim + 4;
  static constexpr int kMergeStatesAt = kWarps * kBlockRows * kMergeStride * 4;
  static constexpr int kMergeBytes = kMergeStatesAt + kWarps * kBlockRows * 8;
  static constexpr int kInboxAt = kRingBytes > kMergeBytes ? kRingBytes : kMergeBytes;
  static constexpr int kSharedBytes = kInboxAt + kInboxBytes;
};

}  // namespace inferometer::decode
