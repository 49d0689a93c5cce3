// Which block does which slices of which tile.
#include "kernels/matmul/work_split.cuh"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

const std::vector<WorkSplit> kSplits = {{.tiles = 1, .slices_per_tile = 1, .slices_per_block = 1},
                                        {.tiles = 7, .slices_per_tile = 5, .slices_per_block = 5},
                                        {.tiles = 7, .slices_per_tile = 5, .slices_per_block = 10},
                                        {.tiles = 7, .slices_per_tile = 5, .slices_per_block = 1},
                                        {.tiles = 7, .slices_per_tile = 5, .slices_per_block = 3},
                                        {.tiles = 7, .slices_per_tile = 5, .slices_per_block = 12},
                                        {.tiles = 64, .slices_per_tile = 64, .slices_per_block = 16},
                                        {.tiles = 3, .slices_per_tile = 4, .slices_per_block = 99}};

TEST_CASE("matmul split: a tile's blocks are those whose slices meet it", "[matmul]") {
  for (const WorkSplit& split : kSplits)
    for (std::int64_t tile = 0; tile < split.tiles; ++tile) {
      std::set<std::int64_t> blocks;
      for (std::int64_t slice = 0; slice < split.slices_per_tile; ++slice)
        blocks.insert((tile * split.slices_per_tile + slice) / split.slices_per_block);
      INFO("tile " << tile << " of " << split.tiles << ", " << split.slices_per_tile << " slices, "
                   << split.slices_per_block << " per block");
      CHECK(split.first_block(tile) == *blocks.begin());
      CHECK(split.last_block(tile) == *blocks.rbegin());
      CHECK(split.last_block(tile) < split.blocks());
      if (!split.shares_tiles()) CHECK(blocks.size() == 1);
    }
}

TEST_CASE("matmul split: no two shared tiles leave their sums in one slot", "[matmul]") {
  for (const WorkSplit& split : kSplits) {
    std::set<std::int64_t> used;
    for (std::int64_t tile = 0; tile < split.tiles; ++tile) {
      if (split.first_block(tile) == split.last_block(tile)) continue;
      for (std::int64_t block = split.first_block(tile); block <= split.last_block(tile); ++block) {
        const std::int64_t slot = split.slot(block, tile);
        INFO("tile " << tile << " block " << block << " slot " << slot);
        CHECK(slot < split.slots());
        CHECK(used.insert(slot).second);
      }
    }
  }
}

TEST_CASE("matmul order: every tile comes once, also where the last band is narrow", "[matmul]") {
  for (const auto& [tiles_m, tiles_n, band] : {std::tuple{1, 1, 16}, std::tuple{16, 3, 16}, std::tuple{17, 5, 16},
                                               std::tuple{40, 7, 8}, std::tuple{3, 9, 1}}) {
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (std::int64_t i = 0; i < tiles_m * tiles_n; ++i) {
      const TileIndex tile = tile_in_order(i, tiles_m, tiles_n, band);
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
    const TileIndex tile = tile_in_order(i, 64, 32, 16);
    rows.insert(tile.m);
    columns.insert(tile.n);
  }
  CHECK(rows.size() + columns.size() == 16 + 9);  // 132 tiles in columns of 16
}

TEST_CASE("matmul order: tile numbers above 2^32 keep their place", "[matmul]") {
  const std::int64_t tiles_n = std::int64_t{1} << 30;
  const TileIndex tile = tile_in_order(16 * tiles_n + 16 * 5 + 3, 64, tiles_n, 16);
  CHECK(tile.m == 19);
  CHECK(tile.n == 5);
}

}  // namespace
}  // namespace inferometer::test
