// attention_prefill / flash_sm80: tiles and registers, chosen for each width of heads.
#pragma once

#include "kernels/attention_prefill/flash_sm80_params.hpp"
#include "kernels/common/swizzled_tile.cuh"

namespace inferometer {

// kHeadDim: of the tiles, at least the problem's; the rest is zero. kQueriesInRegisters: otherwise Q's fragments are
// read from shared memory at each step. kBlocksPerSm: with 2 blocks of 128 threads the compiler may use the 255
// registers a thread can have.
template <class T_, int kHeadDim_, int kWarps_, int kRowTiles_, int kTileKv_, bool kQueriesInRegisters_,
          int kBlocksPerSm_, int kStages_ = 2>
struct FlashConfig {
  using T = T_;
  using Tile = SwizzledTile<kHeadDim_>;
  using Params = FlashParams;
  static constexpr bool kGeneral = false;
  static constexpr int kThreads = kWarps_ * 32;
  static constexpr int kRowTiles = kRowTiles_;
  static constexpr int kWarpRows = kRowTiles_ * 16;
  static constexpr int kTileQ = kWarps_ * kWarpRows;
  static constexpr int kTileKv = kTileKv_;
  static constexpr int kKeyTiles = kTileKv_ / 8;    // of 8 columns of S
  static constexpr int kDimSteps = kHeadDim_ / 16;  // of 16 columns of Q, K and V
  static constexpr bool kQueriesInRegisters = kQueriesInRegisters_;
  static constexpr int kBlocksPerSm = kBlocksPerSm_;
  static constexpr int kTileQBytes = kTileQ * Tile::kRowBytes;
  static constexpr int kTileKvBytes = kTileKv * Tile::kRowBytes;
  // Two stages: the block meets at each tile. More, loose: stages have barriers of their own, Q comes by way of the
  // last ones, and a warp may be a tile ahead of another.
  static constexpr int kStages = kStages_;
  static constexpr bool kLoose = kStages > 2;
  static constexpr int kStageBytes = kLoose ? 2 * kTileKvBytes : kTileKvBytes;  // from one K to the next
  static constexpr int kValuesAt = kLoose ? kTileKvBytes : 2 * kTileKvBytes;    // from K to V of a stage
  static constexpr int kStagesBytes = kStages * 2 * kTileKvBytes;
  static constexpr int kSharedBytes = (kLoose ? 0 : kTileQBytes) + kStagesBytes;
  static_assert(!kLoose || (kQueriesInRegisters && kTileQBytes <= kStagesBytes - 2 * kTileKvBytes));
};

// The same tiles for problems that are not plain: ragged or paged, with strides, a window, a soft cap or values of
// another width. A kernel of its own, so that plain problems pay nothing for these. On an H200, 4 x 4096 tokens,
// head_dim 128, full (causal) against the plain kernel: contiguous or ragged 0.87x (0.93x), paged 0.79x (0.88x) with
// blocks of 16 as with 256 keys, a soft cap 0.59x (0.65x): tanhf is longer than all else that a score costs.
template <class Config>
struct GeneralFlashConfig : Config {
  using Params = GeneralFlashParams;
  static constexpr bool kGeneral = true;
};

}  // namespace inferometer
