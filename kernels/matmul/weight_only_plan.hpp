// How cuda.w4a16 and cuda.w8a16 do a problem: which kernel, its tile, how k is shared out, what it is launched with.
// Host only.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/common/gpu_limits.hpp"
#include "kernels/matmul/packing.hpp"

namespace inferometer {

// A tile of weight_only_wgmma_kernel and what a slice of it costs with codes of four bits, measured on an H200
// (results/notes/weight_only_matmul.md).
struct WeightOnlyTile {
  int tokens;
  int bands;
  double slice_ns;
};

inline constexpr std::array kWeightOnlyTiles = {
    WeightOnlyTile{32, 1, 98},   WeightOnlyTile{32, 2, 193},  WeightOnlyTile{64, 1, 117},  WeightOnlyTile{64, 2, 232},
    WeightOnlyTile{72, 1, 126},  WeightOnlyTile{72, 2, 248},  WeightOnlyTile{96, 1, 150},  WeightOnlyTile{96, 2, 288},
    WeightOnlyTile{128, 1, 183}, WeightOnlyTile{128, 2, 355}, WeightOnlyTile{144, 2, 420}, WeightOnlyTile{192, 2, 515},
    WeightOnlyTile{256, 2, 640},
};

struct WeightOnlyPlan {
  bool few_tokens = false;
  int shape = 0;        // wgmma: in kWeightOnlyTiles
  int tokens = 0;       // of a tile
  int tiles = 0;        // few tokens: tiles of 16 rows a block; wgmma: rows of tiles of the whole product
  int token_tiles = 0;  // few tokens: of 8 tokens a block; wgmma: tiles of tokens of the whole product
  int order_band = 0;   // wgmma: tiles of tokens that run side by side
  int parts = 1;        // of k, one a block: a cluster
  int stages = 0;       // few tokens: of a warp's ring
  std::int64_t blocks = 0;
  int threads = 0;
  int smem_bytes = 0;
  double predicted_ns = 0;
};

// The fastest by prediction; the same for the same problem and limits. The GPU is of compute capability 9.0.
WeightOnlyPlan make_weight_only_plan(const PackedShape& weights, std::int64_t m, const GpuLimits& gpu);

}  // namespace inferometer
