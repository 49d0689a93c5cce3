// How weights of 8 and 4 bits lie in memory for cuda.w4a16 and cuda.w8a16: a re-ordering of the canonical tensors
// (reference/matmul/layout.hpp), done once for a weight matrix, whatever the number of tokens it will meet.
//
// The unit is a tile: 16 rows of W in a slice of 64 elements of k, what a warp multiplies in four m16n8k16 steps.
//
//   tile    [bits / 4, 32 lanes, 16 bytes] codes, unsigned
//           [groups, 16 rows] scales of the problem's dtype, then [groups, 16 rows] u8 zero points where they vary
//
// groups is 2 for group_size 32, else 1. Each lane finds its own codes in its own 16 bytes (32 at 8 bits), so that they
// go from memory to fragments without crossing lanes (after Frantar et al., "MARLIN: Mixed-Precision Auto-Regressive
// Parallel Inference on Large Language Models", PPoPP 2025), and scales travel with the codes: one copy brings all. A
// scale of 128 or more elements stands in each of its slices, 3 % more bytes at 4 bits and group_size 128.
//
// Tiles lie row tile by row tile within a slice, slice by slice within a panel of 256 rows (the last may be lower, and
// is padded to a multiple of 64): what a block reads of a slice is contiguous whether it takes 16 rows or 256. Rows
// past n and elements past k hold code 0 and scale 0.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

inline constexpr int kTileRows = 16;
inline constexpr int kSliceK = 64;
inline constexpr int kStepK = 16;     // of k in one mma
inline constexpr int kBandTiles = 4;  // of 64 rows, which wgmma takes at once
inline constexpr int kBandRows = kBandTiles * kTileRows;
inline constexpr int kPanelTiles = 16;

// Where a code lies: `bit` of the 32-bit word number `word` of its tile.
struct CodePlace {
  int word;
  int bit;

  bool operator==(const CodePlace&) const = default;
};

// Element `k` of row `row`, both within the tile; kBits 4 or 8.
//
// Lane 4 g + t holds, of every step, rows g and g + 8 at k = 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 (ptx/mma.cuh): four
// pairs of neighbours in k, one register of the fragment each. The codes of a pair lie 16 bits apart, so that one mask
// picks both out of a word and leaves them in the two halves of a register.
template <int kBits>
INFEROMETER_HOST_DEVICE constexpr CodePlace code_place(int row, int k) {
  static_assert(kBits == 4 || kBits == 8);
  const int lane = row % 8 * 4 + k % 8 / 2;
  const int pair = row / 8 + k % kStepK / 8 * 2;
  const int half = k % 2;
  const int step = k / kStepK;
  if constexpr (kBits == 4) return {lane * 4 + step, 4 * pair + 16 * half};
  return {(step / 2 * 32 + lane) * 4 + step % 2 * 2 + pair / 2, 8 * (pair % 2) + 16 * half};
}

// Which element lies in bits [kBits field, kBits (field + 1)) of word `word` of a tile: the inverse of code_place.
struct TileElement {
  int row;
  int k;

  bool operator==(const TileElement&) const = default;
};

template <int kBits>
INFEROMETER_HOST_DEVICE constexpr TileElement tile_element(int word, int field) {
  const int bit = kBits * field;
  const int half = bit / 16;
  const int lane = word / 4 % 32;
  const int pair = kBits == 4 ? bit % 16 / 4 : word % 2 * 2 + bit % 16 / 8;
  const int step = kBits == 4 ? word % 4 : word / 128 * 2 + word % 4 / 2;
  return {pair % 2 * 8 + lane / 4, step * kStepK + pair / 2 * 8 + lane % 4 * 2 + half};
}

// The packed form of an [n, k] matrix.
struct PackedShape {
  std::int64_t n;
  std::int64_t k;
  int bits;        // 4 or 8
  int group_size;  // 32, 64 or 128; 0: all of k
  bool symmetric;  // no zero points

  INFEROMETER_HOST_DEVICE constexpr std::int64_t slices() const { return (k + kSliceK - 1) / kSliceK; }
  // Rows of tiles, in whole bands.
  INFEROMETER_HOST_DEVICE constexpr std::int64_t row_tiles() const {
    return (n + kBandRows - 1) / kBandRows * kBandTiles;
  }
  INFEROMETER_HOST_DEVICE constexpr int slice_groups() const { return group_size == 32 ? 2 : 1; }

  // The usual format, symmetric and with one group a slice at most: kernels know its offsets when they are compiled and
  // leave out what only others need.
  INFEROMETER_HOST_DEVICE constexpr bool is_plain() const { return symmetric && slice_groups() == 1; }

  // Within a tile.
  INFEROMETER_HOST_DEVICE constexpr int scales_at() const { return kTileRows * kSliceK * bits / 8; }
  INFEROMETER_HOST_DEVICE constexpr int zeros_at() const { return scales_at() + slice_groups() * kTileRows * 2; }
  INFEROMETER_HOST_DEVICE constexpr int tile_bytes() const {
    return zeros_at() + (symmetric ? 0 : slice_groups() * kTileRows);
  }

  INFEROMETER_HOST_DEVICE constexpr std::int64_t bytes() const { return row_tiles() * slices() * tile_bytes(); }
  // Byte offset of a tile.
  INFEROMETER_HOST_DEVICE constexpr std::int64_t tile_at(std::int64_t row_tile, std::int64_t slice) const {
    const std::int64_t panel_tile = row_tile / kPanelTiles * kPanelTiles;
    const std::int64_t panel_tiles = row_tiles() - panel_tile < kPanelTiles ? row_tiles() - panel_tile : kPanelTiles;
    return (panel_tile * slices() + slice * panel_tiles + row_tile % kPanelTiles) * tile_bytes();
  }
  // Group of k that an element belongs to.
  INFEROMETER_HOST_DEVICE constexpr std::int64_t group_of(std::int64_t element) const {
    return group_size == 0 ? 0 : element / group_size;
  }
};

}  // namespace inferometer
