// Candidates of cuda.f16_sm90 as variants of their own: f16, each a tile of sm90_matmul_kernel.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "harness/operator/variant.hpp"
#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/sm90_launch.hpp"
#include "kernels/matmul/sm90_matmul.cuh"
#include "kernels/matmul/sm90_tile_table.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer::sm90_lab {

inline constexpr GpuLimits kGpu{.sm_count = 132, .block_smem_bytes = 232448, .clusters = true};
inline constexpr std::array<std::int64_t, 8> kClusters = {132, 66, 39, 30, 22, 17, 15, 15};
inline constexpr int kLargeTile = 8;  // 128 x 256 in kSm90Tiles

template <Sm90Tile kT>
struct LabTile {
  static constexpr Sm90Tile kTile = kT;
  static_assert(kT.smem_bytes() <= 232448);
};

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The plan of a tile; with as many parts of k as run at once where it can share out k.
inline std::optional<Sm90Plan> plan_of(const MatmulProblem& p, const Sm90Tile& tile) {
  if (tile.cuts && !tile.weights_are_a && !tile.pairs) {  // as today's tile of 256
    std::optional<Sm90Plan> best;
    for (const Sm90Plan& plan : sm90_plans(p, kGpu))
      if (plan.tile == kLargeTile && (!best || predicted_ns(p, plan, kGpu) < predicted_ns(p, *best, kGpu))) best = plan;
    return best;
  }
  const std::int64_t rows_a = tile.weights_are_a ? p.n : p.m;
  const std::int64_t a = ceil_div(rows_a, tile.tile_a() * (tile.pairs ? 2 : 1));
  const std::int64_t b = ceil_div(tile.weights_are_a ? p.m : p.n, tile.tile_b);
  const std::int64_t slices = ceil_div(p.k, 64);
  const std::int64_t live = std::min<std::int64_t>(tile.sum_groups(), ceil_div(tile.weights_are_a ? p.m : p.n, 8));
  std::int64_t split = 1;
  for (std::int64_t s = 2; s <= 8 && tile.exchange > 0; ++s)
    if (a * b <= kClusters[s - 1] && s <= slices && s * ceil_div(live, s) * tile.groups * 2048 <= tile.exchange)
      split = s;
  if (tile.exchange > 0 && split == 1) return std::nullopt;
  if (split == 1 && !tile.pairs) {  // for what fills one wave or two
    const std::int64_t waves = ceil_div(a * b, 132);
    if (waves > 2 || a * b < waves * 116) return std::nullopt;
  }
  const std::int64_t rows_of_band = 2048 / tile.tile_a() / (tile.pairs ? 2 : 1);
  Sm90Plan plan;
  plan.work = {.order = Sm90TileOrder(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b),
                                      static_cast<std::uint32_t>(std::min(rows_of_band, a))),
               .whole = static_cast<std::uint32_t>(a * b),
               .split = static_cast<std::uint32_t>(split),
               .slices = static_cast<std::uint32_t>(slices / split),
               .long_blocks = static_cast<std::uint32_t>(slices % split)};
  plan.blocks = static_cast<std::uint32_t>(tile.pairs  ? std::min<std::int64_t>(a * b, 66) * 2
                                           : split > 1 ? a * b * split
                                                       : std::min<std::int64_t>(a * b, 132));
  return plan;
}

template <Sm90Tile kT, int kFrom, int kTo>
std::optional<std::string> unsupported(const MatmulProblem& p) {
  if (p.bits == 16 && p.dtype == Dtype::f16 && p.k % 8 == 0 && p.n % 8 == 0 && p.m >= kFrom && p.m <= kTo &&
      (!kT.pairs || (p.m % 256 == 0 && p.n % 256 == 0)) && plan_of(p, kT))
    return std::nullopt;
  return "not what it is for";
}

template <Sm90Tile kT>
const void* kernel() {
  return reinterpret_cast<const void*>(&sm90_matmul_kernel<__half, LabTile<kT>, RoundedOutput<__half>>);
}

template <Sm90Tile kT>
std::shared_ptr<void> prepare(const MatmulProblem& p, const MatmulTensors&, const Launch&, Allocator&) {
  prepare_sm90(kernel<kT>(), kT);
  return std::make_shared<Sm90Plan>(*plan_of(p, kT));
}

template <Sm90Tile kT>
void run(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch) {
  const Sm90Product product{
      .x = t.x, .w = t.w, .y = t.y, .operand = p.dtype, .result = p.dtype, .m = p.m, .n = p.n, .k = p.k};
  RoundedOutput<__half> output;
  launch_sm90(kernel<kT>(), product, kT, *static_cast<const Sm90Plan*>(launch.state), &output, launch.stream);
}

template <Sm90Tile kT, int kFrom, int kTo>
void add(const std::string& name) {
  RegisterVariant(VariantSpec<Matmul>{.name = "cuda.f16_sm90_" + name,
                                      .summary = "candidate",
                                      .min_sm = 90,
                                      .unsupported = &unsupported<kT, kFrom, kTo>,
                                      .prepare = &prepare<kT>,
                                      .run = &run<kT>});
}

}  // namespace inferometer::sm90_lab
