#include "kernels/matmul/weight_only_plan.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "kernels/matmul/weight_only_few_tokens_shape.hpp"
#include "kernels/matmul/weight_only_wgmma_shape.hpp"

namespace inferometer {
namespace {

// Fitted to an H200, results/notes/weight_only_matmul.md.
constexpr double kLaunchNs = 6000;  // of an empty kernel, until the first bytes are there, and to store the last
constexpr double kMemoryBytesPerNs = 4400;  // reading the weights once takes at least this long
constexpr double kClusterNs = 1000;         // for the blocks of a cluster to meet
constexpr double kSharePerTokenNs = 12;     // for them, or warpgroups, to exchange a tile's sums
constexpr double kTileNs = 900;             // to store a tile and to begin with the next
constexpr std::int64_t kOrderBand = 12;     // tiles of tokens beside which as many of rows fill an H200

// A block of the kernel for few tokens, its sixteen warps side by side: of each slice, and of each tile in it. By tiles
// of eight tokens.
struct FewTokensCost {
  double slice_ns;
  double tile_ns;
};
constexpr std::array<FewTokensCost, 2> kFewTokensCost = {{{12, 16}, {12, 20}}};
constexpr double kEightBitFactor = 1.7;  // of tile_ns

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// SMs that clusters of so many blocks reach: clusters of four leave some of a GPC's over (120 of 132 on an H200).
constexpr std::int64_t usable_sms(int parts, int sm_count) {
  if (parts == 1) return sm_count;
  return parts == 2 ? sm_count / 2 * 2 : sm_count * 10 / 11 / 4 * 4;
}

double weight_ns(const PackedShape& weights) { return static_cast<double>(weights.bytes()) / kMemoryBytesPerNs; }

void consider(WeightOnlyPlan& best, const WeightOnlyPlan& plan) {
  if (best.blocks == 0 || plan.predicted_ns < best.predicted_ns) best = plan;
}

void consider_few_tokens(WeightOnlyPlan& best, const PackedShape& weights, std::int64_t m, const GpuLimits& gpu) {
  const FewTokensShape shape = {.token_tiles = static_cast<int>(ceil_div(m, 8))};
  const FewTokensCost& cost = kFewTokensCost.at(static_cast<std::size_t>(shape.token_tiles - 1));
  const double tile_ns = cost.tile_ns * (weights.bits == 8 ? kEightBitFactor : 1);
  for (const int parts : {1, 2}) {
    for (int tiles = 1; tiles <= FewTokensShape::kMaxTiles; ++tiles) {
      const int stages = shape.stages(tiles, weights.tile_bytes(), parts, static_cast<int>(gpu.block_smem_bytes));
      if (stages == 0) continue;
      WeightOnlyPlan plan = {.few_tokens = true,
                             .tokens = shape.tokens(),
                             .tiles = tiles,
                             .token_tiles = shape.token_tiles,
                             .parts = parts,
                             .stages = stages,
                             .blocks = ceil_div(ceil_div(weights.n, kTileRows), tiles) * parts,
                             .threads = FewTokensShape::kThreads,
                             .smem_bytes = shape.smem_bytes(tiles, weights.tile_bytes(), parts, stages)};
      // Warps take slices in turn: all wait for those that have one more.
      const auto slices = static_cast<double>(ceil_div(ceil_div(weights.slices(), parts), FewTokensShape::kWarps) *
                                              FewTokensShape::kWarps);
      const double block_ns = slices * (tiles * tile_ns + cost.slice_ns);
      const auto rounds = static_cast<double>(ceil_div(plan.blocks, usable_sms(parts, gpu.sm_count)));
      plan.predicted_ns = kLaunchNs + std::max(rounds * block_ns, weight_ns(weights)) + (parts > 1 ? kClusterNs : 0);
      consider(best, plan);
    }
  }
}

void consider_wgmma(WeightOnlyPlan& best, const PackedShape& weights, std::int64_t m, const GpuLimits& gpu) {
  for (std::size_t i = 0; i < kWeightOnlyTiles.size(); ++i) {
    const WeightOnlyTile& tile = kWeightOnlyTiles[i];
    const WeightOnlyWgmmaShape shape = {.bits = weights.bits, .tokens = tile.tokens, .bands = tile.bands};
    for (int parts = 1; parts <= WeightOnlyWgmmaShape::kMaxParts; parts *= 2) {
      WeightOnlyPlan plan = {.shape = static_cast<int>(i),
                             .tokens = tile.tokens,
                             .tiles = static_cast<int>(ceil_div(weights.n, std::int64_t{tile.bands} * kBandRows)),
                             .token_tiles = static_cast<int>(ceil_div(m, tile.tokens)),
                             .order_band = kOrderBand,
                             .parts = parts,
                             .threads = shape.threads(),
                             .smem_bytes = shape.smem_bytes()};
      const std::int64_t tiles = std::int64_t{plan.tiles} * plan.token_tiles;
      // A cluster takes one tile; a block alone goes on to others.
      plan.blocks = parts > 1 ? tiles * parts : std::min<std::int64_t>(tiles, gpu.sm_count);
      const auto rounds = static_cast<double>(ceil_div(tiles * parts, usable_sms(parts, gpu.sm_count)));
      double tile_ns = static_cast<double>(ceil_div(weights.slices(), parts)) * tile.slice_ns + kTileNs;
      if (parts > 1 || shape.ways() > 1) tile_ns += kSharePerTokenNs * tile.tokens;
      plan.predicted_ns = kLaunchNs + std::max(rounds * tile_ns, weight_ns(weights)) + (parts > 1 ? kClusterNs : 0);
      consider(best, plan);
    }
  }
}

}  // namespace

WeightOnlyPlan make_weight_only_plan(const PackedShape& weights, std::int64_t m, const GpuLimits& gpu) {
  WeightOnlyPlan best;
  if (m <= kMostFewTokens) consider_few_tokens(best, weights, m, gpu);
  consider_wgmma(best, weights, m, gpu);
  return best;
}

}  // namespace inferometer
