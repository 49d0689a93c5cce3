#include "kernels/matmul/sm90_plan.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "kernels/matmul/sm90_tile_table.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kSliceElems = kSm90TileBytesK / 2;  // 16-bit elements
// Rows of A in a band: about the side of the square that 132 tiles of 128 x 256 cover.
constexpr std::int64_t kBandRows = 2048;

// Fitted, with the figures of kSm90Tiles, to times on an H200: of all plans of 115 problems, of tiles with
// direct_stores where they were the fastest.
constexpr double kStartNs = 6900;           // launch, the first slice's way from memory, the last sums' way to it
constexpr double kMemoryBytesPerNs = 4300;  // of the GPU
constexpr double kReadAgain = 1.55;
// Fewer blocks than these read at less, in proportion: of those that have an SM to themselves, and of others.
constexpr double kReadingBlocks = 120;
constexpr double kReadingSharedBlocks = 70;
constexpr double kExchangeNs = 1050;        // for the blocks of a cluster to meet and to add up
constexpr double kExchangeBytesPerNs = 18;  // that a block sends to others
// Before a block that follows another has its first slice; less where a second one fills the gap.
constexpr double kFillNs = 3050;
constexpr double kSharedFillNs = 330;
// Clusters of 1 .. 8 blocks that run at once, one block an SM, on an H200 with kMeasuredSms: they do not span the
// groups of SMs that a GPU is built from, which are not multiples of every size.
constexpr std::array<std::int64_t, kSm90MostSplit> kClusters = {132, 66, 39, 30, 22, 17, 15, 15};
constexpr std::int64_t kMeasuredSms = 132;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

const Sm90TileCost& cost_of(int index) { return kSm90Tiles.at(static_cast<std::size_t>(index)); }

struct Tiles {
  std::int64_t a;
  std::int64_t b;
  std::int64_t slices;
};

Tiles count_tiles(const MatmulProblem& p, const Sm90Tile& tile) {
  return {
      .a = tile.pairs ? ceil_div(p.m, 2 * tile.tile_a()) * 2 : ceil_div(tile.weights_are_a ? p.n : p.m, tile.tile_a()),
      .b = ceil_div(tile.weights_are_a ? p.m : p.n, tile.tile_b),
      .slices = ceil_div(p.k, kSliceElems)};
}

Sm90Work make_work(const Tiles& tiles, const Sm90Tile& tile, std::int64_t split) {
  const std::int64_t band = std::min(kBandRows / tile.tile_a(), tiles.a);
  return {.order = Sm90TileOrder(static_cast<std::uint32_t>(tiles.a), static_cast<std::uint32_t>(tiles.b),
                                 static_cast<std::uint32_t>(band)),
          .whole = static_cast<std::uint32_t>(tiles.a * tiles.b),
          .split = static_cast<std::uint32_t>(split),
          .slices = static_cast<std::uint32_t>(tiles.slices / split),
          .long_blocks = static_cast<std::uint32_t>(tiles.slices % split)};
}

// As many blocks as run at once, each taking one tile after the other; the last of them in parts, or not.
Sm90Plan whole_tiles(const Tiles& tiles, int index, const GpuLimits& gpu, bool parts) {
  const Sm90Tile& tile = cost_of(index).tile;
  const auto slots = static_cast<std::uint32_t>(gpu.sm_count * tile.blocks_per_sm);
  Sm90Work work = make_work(tiles, tile, 1);
  if (parts) work.whole -= work.whole % slots;
  return {
      .tile = index, .work = work, .blocks = std::min(work.pieces(static_cast<std::uint32_t>(tile.parts())), slots)};
}

// A cluster for each tile.
Sm90Plan split_tiles(const Tiles& tiles, int index, std::int64_t split) {
  const Sm90Work work = make_work(tiles, cost_of(index).tile, split);
  return {.tile = index, .work = work, .blocks = work.order.tiles() * work.split};
}

bool can_split(const Tiles& tiles, const Sm90Tile& tile, std::int64_t split) {
  const auto groups = static_cast<std::uint32_t>(tile.sum_groups());
  const std::int64_t own = sm90_own_groups(groups, static_cast<std::uint32_t>(split));
  const std::int64_t exchanged_bytes = split * own * tile.groups * kSm90Warpgroup * 16;
  return tile.can_split() && tiles.slices >= split && exchanged_bytes <= tile.boxes_at();
}

// Whether the kernel of this tile does the problem at all.
bool can_multiply(const MatmulProblem& p, const Sm90Tile& tile) {
  return (!tile.direct_stores || p.n % 8 == 0) && (!tile.saves_power() || p.activation_bits == 16) &&
         (!p.w_transposed || tile.can_be_kn());
}

// X, W and Y. W as A: the blocks that share its rows, one for each tile of tokens, do not all find them in L2 where two
// blocks of an SM run ahead of each other.
double memory_bytes(const MatmulProblem& p, const Sm90Tile& tile) {
  const auto m = static_cast<double>(p.m);
  const auto n = static_cast<double>(p.n);
  const auto k = static_cast<double>(p.k);
  const bool reads_again = tile.weights_are_a && tile.blocks_per_sm > 1 && p.m > tile.tile_b;
  return 2 * (m * k + n * k * (reads_again ? kReadAgain : 1) + m * n);
}

// Of one slice in each block of an SM, when so many blocks are to run.
double slice_ns(const Sm90TileCost& cost, std::int64_t blocks, std::int64_t sms) {
  const auto on_sm = static_cast<double>(std::min<std::int64_t>(cost.tile.blocks_per_sm, ceil_div(blocks, sms)));
  return std::max(cost.alone_ns, cost.shared_ns * on_sm);
}

// A round of whole tiles: multiplying or reading, whichever takes longer, and storing, while which a second block of
// the SM reads on.
double round_ns(const Sm90TileCost& cost, const Sm90Work& work, std::int64_t blocks, std::int64_t sms, double bytes) {
  const bool alone = cost.tile.blocks_per_sm == 1;
  const double multiply = slice_ns(cost, blocks, sms) * work.slices;
  const double reading = std::max(alone ? kReadingBlocks : kReadingSharedBlocks, static_cast<double>(blocks));
  const double read = bytes / work.order.tiles() * reading / kMemoryBytesPerNs;
  return alone ? std::max(multiply, read) + cost.tile_ns : std::max(multiply + cost.tile_ns, read);
}

// Multiplying whole tiles, and what is left in parts; `bytes` of memory in all.
double whole_ns(const Sm90TileCost& cost, const Sm90Work& work, std::int64_t sms, double bytes) {
  const std::int64_t slots = sms * cost.tile.blocks_per_sm;
  const std::int64_t last = work.whole % slots;
  const std::int64_t parts = std::int64_t{work.order.tiles() - work.whole} * cost.tile.parts();
  return static_cast<double>(work.whole / slots) * round_ns(cost, work, slots, sms, bytes) +
         (last > 0 ? round_ns(cost, work, last, sms, bytes) : 0) +
         static_cast<double>(ceil_div(parts, slots)) * cost.part_ns * work.slices;
}

std::int64_t clusters_at_once(const Sm90Tile& tile, std::uint32_t split, std::int64_t sms) {
  return std::max<std::int64_t>(1, kClusters.at(split - 1) * tile.blocks_per_sm * sms / kMeasuredSms);
}

double exchange_ns(const Sm90Tile& tile, std::uint32_t split) {
  const std::uint32_t groups = sm90_own_groups(static_cast<std::uint32_t>(tile.sum_groups()), split) * (split - 1);
  return kExchangeNs + groups * tile.groups * kSm90Warpgroup * 16 / kExchangeBytesPerNs;
}

bool can_pair(const MatmulProblem& p, const Tiles& tiles, const Sm90Tile& tile, const GpuLimits& gpu) {
  return !tile.pairs || (p.m > tile.tile_a() && p.n % tile.tile_b == 0 &&
                         tiles.a * tiles.b <= 2 * clusters_at_once(tile, 2, gpu.sm_count));
}

}  // namespace

std::vector<Sm90Plan> sm90_plans(const MatmulProblem& p, const GpuLimits& gpu) {
  std::vector<Sm90Plan> plans;
  for (int i = 0; i < static_cast<int>(kSm90Tiles.size()); ++i) {
    const Sm90Tile& tile = cost_of(i).tile;
    const Tiles tiles = count_tiles(p, tile);
    if (!can_multiply(p, tile) || !can_pair(p, tiles, tile, gpu)) continue;
    plans.push_back(whole_tiles(tiles, i, gpu, false));
    if (tile.parts() > 1) plans.push_back(whole_tiles(tiles, i, gpu, true));
    for (std::int64_t split = 2; split <= kSm90MostSplit; ++split)
      if (can_split(tiles, tile, split)) plans.push_back(split_tiles(tiles, i, split));
  }
  return plans;
}

double predicted_ns(const MatmulProblem& p, const Sm90Plan& plan, const GpuLimits& gpu) {
  const Sm90TileCost& cost = cost_of(plan.tile);
  const Sm90Work& work = plan.work;
  const double bytes = memory_bytes(p, cost.tile);
  if (work.split == 1) return kStartNs + whole_ns(cost, work, gpu.sm_count, bytes);

  const std::int64_t waves = ceil_div(work.order.tiles(), clusters_at_once(cost.tile, work.split, gpu.sm_count));
  const double slices = work.slices + (work.long_blocks > 0 ? 1 : 0);
  const double multiply = slice_ns(cost, plan.blocks, gpu.sm_count) * slices * static_cast<double>(waves);
  const double fill = cost.tile.blocks_per_sm == 1 ? kFillNs : kSharedFillNs;
  return kStartNs + std::max(multiply, bytes / kMemoryBytesPerNs) +
         exchange_ns(cost.tile, work.split) * static_cast<double>(waves) + fill * static_cast<double>(waves - 1);
}

namespace {

template <class Allowed>
Sm90Plan fastest(const MatmulProblem& p, const GpuLimits& gpu, Allowed&& allowed) {
  Sm90Plan best;
  double best_ns = std::numeric_limits<double>::infinity();
  for (const Sm90Plan& plan : sm90_plans(p, gpu)) {
    if (!allowed(cost_of(plan.tile).tile)) continue;
    const double ns = predicted_ns(p, plan, gpu);
    if (ns >= best_ns) continue;
    best_ns = ns;
    best = plan;
  }
  return best;
}

}  // namespace

Sm90Plan make_sm90_plan(const MatmulProblem& p, const GpuLimits& gpu) {
  return fastest(p, gpu, [](const Sm90Tile&) { return true; });
}

Sm90Plan make_sm90_late_norm_plan(const MatmulProblem& p, const GpuLimits& gpu) {
  return fastest(p, gpu, [&](const Sm90Tile& tile) { return tile.has_late_norm() && p.m <= tile.tile_b; });
}

}  // namespace inferometer
