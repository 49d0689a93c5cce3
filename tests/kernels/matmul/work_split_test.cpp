// Which block does which slices of which tile.
#include "kernels/matmul/work_split.cuh"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr std::int64_t kBand = 16;

const std::vector<WorkSplit> kSplits = {{.tiles_m = 1, .tiles_n = 1, .slices_per_tile = 1, .slices_per_block = 1},
                                        {.tiles_m = 2, .tiles_n = 7, .slices_per_tile = 5, .slices_per_block = 5},
                                        {.tiles_m = 40, .tiles_n = 3, .slices_per_tile = 5, .slices_per_block = 5},
                                        {.tiles_m = 2, .tiles_n = 7, .slices_per_tile = 5, .slices_per_block = 1},
                                        {.tiles_m = 3, .tiles_n = 7, .slices_per_tile = 5, .slices_per_block = 3},
                                        {.tiles_m = 1, .tiles_n = 7, .slices_per_tile = 5, .slices_per_block = 12},
                                        {.tiles_m = 16, .tiles_n = 7, .slices_per_tile = 5, .slices_per_block = 10},
                                        {.tiles_m = 1, .tiles_n = 64, .slices_per_tile = 64, .slices_per_block = 16},
                                        {.tiles_m = 3, .tiles_n = 3, .slices_per_tile = 4, .slices_per_block = 99}};

TEST_CASE("matmul split: every slice of every tile is one block's, and teams name the blocks", "[matmul]") {
  for (const WorkSplit& split : kSplits) {
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t> block_of_slice;  // m, n, slice
    for (std::int64_t block = 0; block < split.blocks(); ++block) {
      const BlockWork work = split.work_of(block, kBand);
      CHECK(work.first < work.last);
      for (std::int64_t at = work.first; at < work.last; ++at)
        CHECK(block_of_slice.insert({{work.m, at / split.slices_per_tile, at % split.slices_per_tile}, block}).second);
    }
    CHECK(block_of_slice.size() == static_cast<std::size_t>(split.tiles_m * split.slices_of_row()));
    if (!split.shares_tiles()) continue;
    for (const auto& [slice, block] : block_of_slice) {
      const auto& [m, n, k] = slice;
      CHECK(block % split.tiles_m == m);
      if (k == 0) CHECK(block / split.tiles_m == split.first_team(n));
      if (k == split.slices_per_tile - 1) CHECK(block / split.tiles_m == split.last_team(n));
    }
  }
}

TEST_CASE("matmul split: no two shared tiles leave their sums in one slot", "[matmul]") {
  for (const WorkSplit& split : kSplits) {
    if (!split.shares_tiles()) continue;
    std::set<std::int64_t> used;
    for (std::int64_t m = 0; m < split.tiles_m; ++m) {
      for (std::int64_t n = 0; n < split.tiles_n; ++n) {
        if (split.first_team(n) == split.last_team(n)) continue;
        for (std::int64_t team = split.first_team(n); team <= split.last_team(n); ++team) {
          const std::int64_t slot = split.slot(team, m, n);
          INFO("tile " << m << ", " << n << " team " << team << " slot " << slot);
          CHECK(slot < split.slots());
          CHECK(used.insert(slot).second);
        }
      }
    }
  }
}

TEST_CASE("matmul order: every tile comes once, also where the last band is narrow", "[matmul]") {
  for (const auto& [tiles_m, tiles_n, band] :
       {std::array<std::int64_t, 3>{1, 1, 16}, std::array<std::int64_t, 3>{16, 3, 16},
        std::array<std::int64_t, 3>{17, 5, 16}, std::array<std::int64_t, 3>{40, 7, 8},
        std::array<std::int64_t, 3>{3, 9, 1}}) {
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (std::int64_t i = 0; i < tiles_m * tiles_n; ++i) {
      const TileIndex<std::int64_t> tile = tile_in_order(i, tiles_m, tiles_n, band);
      const auto narrow =
          tile_in_order<std::uint32_t>(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(tiles_m),
                                       static_cast<std::uint32_t>(tiles_n), static_cast<std::uint32_t>(band));
      REQUIRE(narrow.m == tile.m);
      REQUIRE(narrow.n == tile.n);
      REQUIRE(tile.m >= 0);
      REQUIRE(tile.m < tiles_m);
      REQUIRE(tile.n >= 0);
      REQUIRE(tile.n < tiles_n);
      seen.insert({tile.m, tile.n});
    }
    CHECK(seen.size() == static_cast<std::size_t>(tiles_m * tiles_n));
  }
}

TEST_CASE("matmul order: 132 tiles at once read few panels of X and W", "[matmul]") {
  std::set<std::int64_t> rows;
  std::set<std::int64_t> columns;
  for (std::int64_t i = 0; i < 132; ++i) {
    const TileIndex<std::int64_t> tile = tile_in_order(i, 64, 32, 16);
    rows.insert(tile.m);
    columns.insert(tile.n);
  }
  CHECK(rows.size() + columns.size() == 16 + 9);  // 132 tiles in columns of 16
}

TEST_CASE("matmul order: tile numbers above 2^32 keep their place", "[matmul]") {
  const std::int64_t tiles_n = std::int64_t{1} << 30;  // tile 83 of the second band: column 5, row 3 of its 16
  const TileIndex<std::int64_t> tile = tile_in_order(16 * tiles_n + 83, 64, tiles_n, 16);
  CHECK(tile.m == 19);
  CHECK(tile.n == 5);
}

}  // namespace
}  // namespace inferometer::test
