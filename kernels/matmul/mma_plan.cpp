#include "kernels/matmul/mma_plan.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "kernels/matmul/tile_table.hpp"

namespace inferometer {
namespace {

// Fitted, with the figures of kTileTable, to the times of all shapes and splits of 56 problems on an H200.
constexpr double kMemoryBytesPerNs = 4330;  // of the GPU: reading X and W once takes at least this long
constexpr double kTileNs = 1100;            // to fill the stages for a tile and to bring its sums home
constexpr double kShareNs = 2750;           // to leave the sums of a shared tile and to learn who is last
constexpr double kMergeBytesPerNs = 90;     // one block reading the sums of others
// Blocks that begin anywhere in a tile are at different places of k at any moment, and find less of X and W in L2.
constexpr double kUnalignedFactor = 1.1;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

WorkSplit whole_tiles(const MatmulProblem& p, const TileShape& shape) {
  const std::int64_t slices = ceil_div(p.k, kTileK);
  return {.tiles_m = ceil_div(p.m, shape.tile_m),
          .tiles_n = ceil_div(p.n, shape.tile_n),
          .slices_per_tile = slices,
          .slices_per_block = slices};
}

// The same dealt out to as many teams as `slots` blocks make; whole tiles where that is not possible.
WorkSplit dealt_out(WorkSplit split, const TileShape& shape, std::int64_t slots) {
  const std::int64_t teams = slots / split.tiles_m;
  if (teams > 0 && split.tiles_m <= shape.band()) split.slices_per_block = ceil_div(split.slices_of_row(), teams);
  return split;
}

double tile_sum_bytes(const TileShape& shape) {
  return static_cast<double>(shape.tile_m * shape.tile_n) * sizeof(float);
}

// The tiles that a block works on, and how many of those it shares with others, at most.
struct BlockTiles {
  std::int64_t all;
  std::int64_t shared;
};

BlockTiles tiles_of_block(const WorkSplit& split) {
  if (!split.shares_tiles()) return {1, 0};
  if (split.slices_per_tile % split.slices_per_block == 0) return {1, 1};
  return {split.slices_per_block / split.slices_per_tile + 2, 2};
}

double predicted_ns(const MatmulProblem& p, const TileCost& cost, const WorkSplit& split, int sm_count) {
  const std::int64_t blocks_of_sm = ceil_div(split.blocks(), sm_count);
  const std::int64_t rounds = ceil_div(blocks_of_sm, cost.shape.blocks_per_sm);
  const double slices = static_cast<double>(split.slices_per_block);
  double multiply = std::max(cost.alone_ns, cost.shared_ns * static_cast<double>(blocks_of_sm)) * slices;
  const double read = 2.0 * static_cast<double>(p.k) * static_cast<double>(p.m + p.n) / kMemoryBytesPerNs;

  const BlockTiles tiles = tiles_of_block(split);
  if (tiles.shared == 2) multiply *= kUnalignedFactor;
  const double parts = static_cast<double>(split.last_team(0) - split.first_team(0) + 1);
  double total = std::max(multiply, read) + kTileNs * static_cast<double>(rounds * tiles.all);
  if (tiles.shared > 0)
    total += kShareNs * static_cast<double>(tiles.shared) + parts * tile_sum_bytes(cost.shape) / kMergeBytesPerNs;
  return total;
}

}  // namespace

MmaPlan make_mma_plan(const MatmulProblem& p, const GpuLimits& gpu) {
  MmaPlan best;
  double best_ns = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kTileTable.size(); ++i) {
    const TileCost& cost = kTileTable[i];
    if (cost.shape.smem_bytes() > gpu.block_smem_bytes) continue;
    const WorkSplit whole = whole_tiles(p, cost.shape);
    const std::int64_t slots = std::int64_t{gpu.sm_count} * cost.shape.blocks_per_sm;
    for (const WorkSplit& split :
         {whole, dealt_out(whole, cost.shape, gpu.sm_count), dealt_out(whole, cost.shape, slots)}) {
      const double ns = predicted_ns(p, cost, split, gpu.sm_count);
      if (ns >= best_ns) continue;
      best_ns = ns;
      best.shape = static_cast<int>(i);
      best.split = split;
    }
  }
  if (best.split.shares_tiles()) {
    const auto slots = static_cast<std::size_t>(best.split.slots());
    const auto tile_bytes =
        static_cast<std::size_t>(tile_sum_bytes(kTileTable[static_cast<std::size_t>(best.shape)].shape));
    best.arrivals_at = slots * tile_bytes;  // a multiple of 256: the smallest tile holds 4 KiB
    best.workspace_bytes =
        best.arrivals_at + static_cast<std::size_t>(best.split.tiles_m * best.split.tiles_n) * sizeof(unsigned);
  }
  return best;
}

}  // namespace inferometer
