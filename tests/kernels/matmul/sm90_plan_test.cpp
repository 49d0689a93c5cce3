// Which tile and split cuda.f16_sm90 takes, and that its blocks do all of the work once.
#include "kernels/matmul/sm90_plan.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "kernels/matmul/sm90_tile_table.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr GpuLimits kH200{.sm_count = 132, .block_smem_bytes = 232448, .clusters = true};

const Sm90Tile& tile_of(const Sm90Plan& plan) { return kSm90Tiles.at(static_cast<std::size_t>(plan.tile)).tile; }

// Pairs of blocks take pairs of tiles; the second may be past the end of A.
std::int64_t even(std::int64_t tiles, bool pairs) { return pairs ? (tiles + 1) / 2 * 2 : tiles; }

TEST_CASE("matmul sm90 tiles: each fits the shared memory of an SM as often as it says", "[matmul]") {
  constexpr std::size_t kSmBytes = 233472;      // H100 and H200
  constexpr std::size_t kReservedBytes = 1024;  // of every block, by the driver
  for (const Sm90TileCost& cost : kSm90Tiles) {
    const Sm90Tile& tile = cost.tile;
    INFO((tile.weights_are_a ? "W as A, " : "X as A, ") << tile.tile_b);
    CHECK(tile.smem_bytes() <= kH200.block_smem_bytes);
    CHECK((tile.smem_bytes() + kReservedBytes) * static_cast<std::size_t>(tile.blocks_per_sm) <= kSmBytes);
  }
}

TEST_CASE("matmul sm90 tiles: stages and boxes begin where the swizzle repeats", "[matmul]") {
  for (const Sm90TileCost& cost : kSm90Tiles) {
    const Sm90Tile& tile = cost.tile;
    INFO((tile.weights_are_a ? "W as A, " : "X as A, ") << tile.tile_b);
    CHECK(tile.a_bytes() % 1024 == 0);
    CHECK(tile.stage_bytes() % 1024 == 0);
    CHECK(tile.boxes_at() % 1024 == 0);
    CHECK(tile.box_bytes() % 1024 == 0);
    CHECK((tile.direct_stores || tile.sum_groups() % tile.box_groups() == 0));
    CHECK(tile.part_b() % 8 == 0);
    if (tile.pairs) CHECK(tile.copied_b() % 8 == 0);
  }
}

TEST_CASE("matmul sm90 tiles: those for a W stored by columns hold whole panels of it", "[matmul]") {
  for (const Sm90TileCost& cost : kSm90Tiles) {
    const Sm90Tile& tile = cost.tile;
    if (!tile.can_be_kn()) continue;
    INFO((tile.weights_are_a ? "W as A, " : "X as A, ") << tile.tile_b);
    CHECK((tile.weights_are_a ? tile.tile_a() : tile.tile_b) % kSm90PanelRows == 0);
    CHECK((tile.weights_are_a || tile.part_b() % kSm90PanelRows == 0));
  }
}

TEST_CASE("matmul sm90 plans: a W stored by columns has some at every size, with tiles that can hold it", "[matmul]") {
  for (const std::int64_t m : {1, 33, 129, 4096}) {
    for (const std::int64_t n : {8, 80, 1448, 4096}) {
      const MatmulProblem p{.m = m, .n = n, .k = 520, .w_transposed = true};
      const std::vector<Sm90Plan> plans = sm90_plans(p, kH200);
      CHECK_FALSE(plans.empty());
      CHECK(std::all_of(plans.begin(), plans.end(), [](const Sm90Plan& plan) { return tile_of(plan).can_be_kn(); }));
      CHECK(make_sm90_plan(p, kH200).blocks > 0);
    }
  }
}

TEST_CASE("matmul sm90 order: every tile comes once, also where the last band is narrow", "[matmul]") {
  for (const auto& [tiles_a, tiles_b, rows] :
       {std::array<std::uint32_t, 3>{1, 1, 1}, std::array<std::uint32_t, 3>{16, 3, 16},
        std::array<std::uint32_t, 3>{17, 5, 16}, std::array<std::uint32_t, 3>{40, 7, 8},
        std::array<std::uint32_t, 3>{32, 7, 16}, std::array<std::uint32_t, 3>{3, 9, 1}}) {
    const Sm90TileOrder order(tiles_a, tiles_b, rows);
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    REQUIRE(order.tiles() == tiles_a * tiles_b);
    for (std::uint32_t i = 0; i < order.tiles(); ++i) {
      const Sm90TileIndex tile = order[i];
      REQUIRE(tile.a < tiles_a);
      REQUIRE(tile.b < tiles_b);
      seen.insert({tile.a, tile.b});
    }
    CHECK(seen.size() == order.tiles());
  }
}

TEST_CASE("matmul sm90 order: 132 tiles at once read few panels of A and B", "[matmul]") {
  const Sm90TileOrder order(64, 32, 16);
  std::set<std::uint32_t> a;
  std::set<std::uint32_t> b;
  for (std::uint32_t i = 0; i < 132; ++i) {
    a.insert(order[i].a);
    b.insert(order[i].b);
  }
  CHECK(a.size() + b.size() == 16 + 9);  // 132 tiles in columns of 16
}

TEST_CASE("matmul sm90 plans: each covers Y and all of k", "[matmul]") {
  for (const std::int64_t m : {1, 16, 17, 64, 65, 257, 4096}) {
    for (const std::int64_t n : {1, 8, 1440, 1441, 4096, 14336}) {
      for (const std::int64_t k : {8, 24, 4104, 29568}) {
        for (const Sm90Plan& plan : sm90_plans({.m = m, .n = n, .k = k}, kH200)) {
          const Sm90Tile& tile = tile_of(plan);
          const Sm90Work& work = plan.work;
          INFO("m=" << m << " n=" << n << " k=" << k << " tile " << plan.tile << " split " << work.split);
          const std::int64_t rows_a = tile.weights_are_a ? n : m;
          const std::int64_t rows_b = tile.weights_are_a ? m : n;
          const std::int64_t tiles_a = even((rows_a + tile.tile_a() - 1) / tile.tile_a(), tile.pairs);
          const std::int64_t tiles_b = (rows_b + tile.tile_b - 1) / tile.tile_b;
          CHECK(work.order.tiles() == tiles_a * tiles_b);
          std::uint32_t slices = 0;
          for (std::uint32_t rank = 0; rank < work.split; ++rank) {
            CHECK(work.first_slice(rank) == slices);
            CHECK(work.slices_of(rank) > 0);
            slices += work.slices_of(rank);
          }
          CHECK(slices == (k * 2 + kSm90TileBytesK - 1) / kSm90TileBytesK);
          CHECK(plan.blocks % work.split == 0);
          if (work.split > 1) CHECK(plan.blocks == work.order.tiles() * work.split);
          CHECK(work.whole <= work.order.tiles());
        }
      }
    }
  }
}

TEST_CASE("matmul sm90 plans: what a cluster exchanges fits in its stages", "[matmul]") {
  for (const Sm90Plan& plan : sm90_plans({.m = 200, .n = 4096, .k = 4096}, kH200)) {
    if (plan.work.split == 1) continue;
    const Sm90Tile& tile = tile_of(plan);
    const std::uint32_t own = sm90_own_groups(static_cast<std::uint32_t>(tile.sum_groups()), plan.work.split);
    CHECK(plan.work.split * own * static_cast<std::uint32_t>(tile.groups) * 128 * 16 <=
          static_cast<std::uint32_t>(tile.boxes_at()));
  }
}

TEST_CASE("matmul sm90 plan: decode keeps nearly every SM busy", "[matmul]") {
  for (const std::int64_t n : {4096, 6144, 14336}) {
    for (const std::int64_t k : {4096, 14336}) {
      INFO("n=" << n << " k=" << k);
      const Sm90Plan plan = make_sm90_plan({.m = 1, .n = n, .k = k}, kH200);
      CHECK(plan.blocks >= 88);
      CHECK(tile_of(plan).weights_are_a);
      CHECK(tile_of(plan).tile_b == 16);
    }
  }
}

// Rows of W in a tile: the fastest of those measured at 128 tokens (results/notes/matmul.md).
TEST_CASE("matmul sm90 plan: 128 tokens fill every SM once, or twice", "[matmul]") {
  for (const auto& [n, k, rows] :
       {std::array<std::int64_t, 3>{28672, 4096, 224}, std::array<std::int64_t, 3>{57344, 8192, 224},
        std::array<std::int64_t, 3>{10240, 8192, 80}, std::array<std::int64_t, 3>{37888, 3584, 288},
        std::array<std::int64_t, 3>{11264, 2048, 96}}) {
    INFO("n=" << n << " k=" << k);
    const Sm90Plan plan = make_sm90_plan({.m = 128, .n = n, .k = k}, kH200);
    CHECK(tile_of(plan).direct_stores);
    CHECK(tile_of(plan).tile_b == rows);
    CHECK(plan.work.split == 1);
    CHECK(plan.blocks >= 118);
  }
}

TEST_CASE("matmul sm90 plan: some 128 tokens of square layers take pairs of blocks", "[matmul]") {
  for (const std::int64_t m : {96, 128}) {
    for (const std::int64_t n : {3584, 4096, 8192}) {
      INFO("m=" << m << " n=" << n);
      const Sm90Plan plan = make_sm90_plan({.m = m, .n = n, .k = n}, kH200);
      CHECK(tile_of(plan).pairs);
      CHECK(plan.blocks >= 112);
      CHECK(plan.blocks <= 132);
    }
  }
}

TEST_CASE("matmul sm90 plans: pairs have a second row of tiles, and W comes whole", "[matmul]") {
  for (const std::int64_t m : {1, 64, 65, 129, 600}) {
    for (const std::int64_t n : {32, 100, 4096, 4104}) {
      for (const Sm90Plan& plan : sm90_plans({.m = m, .n = n, .k = 4096}, kH200)) {
        if (!tile_of(plan).pairs) continue;
        INFO("m=" << m << " n=" << n);
        CHECK(m > 64);
        CHECK(n % tile_of(plan).tile_b == 0);
        CHECK(plan.blocks % 2 == 0);
        CHECK(plan.blocks == plan.work.order.tiles());
        for (std::uint32_t i = 0; i < plan.blocks; i += 2) CHECK(plan.work.order[i].b == plan.work.order[i + 1].b);
      }
    }
  }
}

TEST_CASE("matmul sm90 plans: warps store Y only where its rows are aligned", "[matmul]") {
  for (const Sm90Plan& plan : sm90_plans({.m = 128, .n = 1441, .k = 4096}, kH200)) CHECK(!tile_of(plan).direct_stores);
}

TEST_CASE("matmul sm90 plans: int8 takes no tile that saves power", "[matmul]") {
  for (const Sm90Plan& plan : sm90_plans({.m = 8192, .n = 8192, .k = 4096, .activation_bits = 8}, kH200))
    CHECK(!tile_of(plan).saves_power());
}

TEST_CASE("matmul sm90 plans: of 1100 x 5760 blocks take several tiles, whatever the tile", "[matmul]") {
  std::set<int> tiles;  // what all plans are compared at on a GPU
  for (const Sm90Plan& plan : sm90_plans({.m = 1100, .n = 5760, .k = 136}, kH200)) {
    if (plan.work.split > 1) continue;
    tiles.insert(plan.tile);
    CHECK(plan.work.order.tiles() > plan.blocks);
  }
  const auto pairs =
      std::count_if(kSm90Tiles.begin(), kSm90Tiles.end(), [](const Sm90TileCost& cost) { return cost.tile.pairs; });
  CHECK(std::ssize(tiles) + pairs == std::ssize(kSm90Tiles));
}

TEST_CASE("matmul sm90 late norm plan: all tokens in one tile that has one", "[matmul]") {
  for (const std::int64_t m : {1, 16, 17, 32}) {
    for (const std::int64_t n : {2048, 4096, 37888}) {
      INFO("m=" << m << " n=" << n);
      const Sm90Plan plan = make_sm90_late_norm_plan({.m = m, .n = n, .k = 4096}, kH200);
      CHECK(tile_of(plan).has_late_norm());
      CHECK(tile_of(plan).tile_b >= m);
    }
  }
}

TEST_CASE("matmul sm90 plan: large products take the tiles with the fewest bytes, nearly all of them whole",
          "[matmul]") {
  for (const auto& [size, rows] : {std::pair<std::int64_t, int>{4096, 256}, std::pair<std::int64_t, int>{8192, 192}}) {
    const Sm90Plan plan = make_sm90_plan({.m = size, .n = size, .k = size}, kH200);
    INFO("size " << size);
    CHECK(tile_of(plan).tile_b == rows);
    CHECK(tile_of(plan).tile_a() * tile_of(plan).tile_b >= 128 * 256);
    CHECK(plan.work.split == 1);
    CHECK(plan.work.whole * 10 >= plan.work.order.tiles() * 9);
  }
}

}  // namespace
}  // namespace inferometer::test
