// Which shape and split cuda.f16_sm80 takes.
#include "kernels/matmul/mma_plan.hpp"

#include <cstdint>

#include "kernels/matmul/tile_table.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr GpuLimits kH200{.sm_count = 132, .block_smem_bytes = 232448};

const TileShape& shape_of(const MmaPlan& plan) { return kTileTable.at(static_cast<std::size_t>(plan.shape)).shape; }

TEST_CASE("matmul plan: every element of Y and of k is in some block's work", "[matmul]") {
  for (const std::int64_t m : {1, 16, 17, 64, 65, 257, 4096}) {
    for (const std::int64_t n : {1, 8, 1441, 4096, 14336}) {
      for (const std::int64_t k : {8, 24, 4104, 29568}) {
        const MmaPlan plan = make_mma_plan({.m = m, .n = n, .k = k}, kH200);
        const TileShape& shape = shape_of(plan);
        INFO("m=" << m << " n=" << n << " k=" << k);
        const std::int64_t tiles_m = (m + shape.tile_m - 1) / shape.tile_m;
        const std::int64_t tiles_n = (n + shape.tile_n - 1) / shape.tile_n;
        CHECK(plan.split.tiles_m == tiles_m);
        CHECK(plan.split.tiles_n == tiles_n);
        CHECK(plan.split.slices_per_tile * kTileK >= k);
        CHECK((plan.split.slices_per_tile - 1) * kTileK < k);
        if (plan.split.shares_tiles()) CHECK(tiles_m <= shape.band());
      }
    }
  }
}

TEST_CASE("matmul plan: the workspace holds all sums and arrivals, and is none where tiles are whole", "[matmul]") {
  for (const std::int64_t m : {1, 64, 257, 4096}) {
    for (const std::int64_t n : {8, 1024, 4096, 14336}) {
      const MmaPlan plan = make_mma_plan({.m = m, .n = n, .k = 4096}, kH200);
      INFO("m=" << m << " n=" << n);
      if (!plan.split.shares_tiles()) {
        CHECK(plan.workspace_bytes == 0);
        continue;
      }
      const auto sum_bytes =
          static_cast<std::size_t>(plan.split.slots() * shape_of(plan).tile_m * shape_of(plan).tile_n * 4);
      CHECK(plan.arrivals_at >= sum_bytes);
      CHECK(plan.arrivals_at % 256 == 0);
      CHECK(plan.workspace_bytes >=
            plan.arrivals_at + static_cast<std::size_t>(plan.split.tiles_m * plan.split.tiles_n) * 4);
    }
  }
}

TEST_CASE("matmul plan: decode keeps nearly every SM busy", "[matmul]") {
  for (const std::int64_t n : {1024, 4096, 14336}) {
    for (const std::int64_t k : {4096, 14336}) {
      INFO("n=" << n << " k=" << k);
      CHECK(make_mma_plan({.m = 1, .n = n, .k = k}, kH200).split.blocks() >= kH200.sm_count * 9 / 10);
    }
  }
}

TEST_CASE("matmul plan: large products take the largest tiles, whole", "[matmul]") {
  for (const std::int64_t size : {4096, 8192}) {
    const MmaPlan plan = make_mma_plan({.m = size, .n = size, .k = size}, kH200);
    CHECK(shape_of(plan).tile_m * shape_of(plan).tile_n == 128 * 256);
    CHECK_FALSE(plan.split.shares_tiles());
  }
}

TEST_CASE("matmul plan: a GPU with little shared memory gets shapes that fit", "[matmul]") {
  constexpr GpuLimits kSmall{.sm_count = 84, .block_smem_bytes = 101376};  // compute capability 8.6
  for (const std::int64_t m : {1, 64, 257, 4096})
    CHECK(shape_of(make_mma_plan({.m = m, .n = 4096, .k = 4096}, kSmall)).smem_bytes() <= kSmall.block_smem_bytes);
}

}  // namespace
}  // namespace inferometer::test
