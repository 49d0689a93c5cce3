#include "kernels/matmul/mma_plan.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "kernels/matmul/tile_table.hpp"

namespace inferometer {
namespace {

constexpr double kMemoryBytesPerNs = 4500;  // of the GPU: reading W once is the least time
constexpr double kTileNs = 1500;            // to fill the stages before a tile and to store it afterwards
constexpr double kArrivalNs = 1000;         // to announce the sums of a shared tile and to learn who is last
constexpr double kMergeBytesPerNs = 60;     // one block reading others' sums from L2

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

WorkSplit whole_tiles(const MatmulProblem& p, const TileShape& shape) {
  const std::int64_t slices = ceil_div(p.k, kTileK);
  return {.tiles = ceil_div(p.m, shape.tile_m) * ceil_div(p.n, shape.tile_n),
          .slices_per_tile = slices,
          .slices_per_block = slices};
}

double tile_sum_bytes(const TileShape& shape) {
  return static_cast<double>(shape.tile_m * shape.tile_n) * sizeof(float);
}

double predicted_ns(const MatmulProblem& p, const TileCost& cost, const WorkSplit& split, int sm_count) {
  const std::int64_t blocks_of_sm = ceil_div(split.blocks(), sm_count);
  const auto slices_of_block = static_cast<double>(split.slices_per_block);
  const double alone = cost.alone_ns * slices_of_block;
  const double shared = cost.shared_ns * slices_of_block * static_cast<double>(blocks_of_sm);
  const double compute = std::max(alone, shared);

  const double bytes = 2.0 * static_cast<double>(p.k) * static_cast<double>(p.m + p.n);
  const double rounds = static_cast<double>(ceil_div(blocks_of_sm, cost.shape.blocks_per_sm));
  double total = std::max(compute, bytes / kMemoryBytesPerNs) + rounds * kTileNs;
  if (split.shares_tiles()) {
    const auto parts = static_cast<double>(split.last_block(0) - split.first_block(0) + 1);
    total += kArrivalNs + parts * tile_sum_bytes(cost.shape) / kMergeBytesPerNs;
  }
  return total;
}

}  // namespace

MmaPlan make_mma_plan(const MatmulProblem& p, int sm_count) {
  MmaPlan best;
  double best_ns = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kTileTable.size(); ++i) {
    const TileCost& cost = kTileTable[i];
    const WorkSplit whole = whole_tiles(p, cost.shape);
    const std::int64_t full_sms = ceil_div(whole.slices(), sm_count);
    const std::int64_t full_slots = ceil_div(whole.slices(), sm_count * cost.shape.blocks_per_sm);
    for (const std::int64_t slices_per_block : {whole.slices_per_block, full_sms, full_slots}) {
      WorkSplit split = whole;
      split.slices_per_block = slices_per_block;
      const double ns = predicted_ns(p, cost, split, sm_count);
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
    best.workspace_bytes = best.arrivals_at + static_cast<std::size_t>(best.split.tiles) * sizeof(unsigned);
  }
  return best;
}

}  // namespace inferometer
