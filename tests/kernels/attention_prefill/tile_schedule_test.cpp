// The order in which the flash kernels compute their tiles of queries, and which keys a query sees.
#include "kernels/attention_prefill/tile_schedule.cuh"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "kernels/attention_prefill/visible_keys.cuh"
#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

std::vector<QueryTile> order_of(const TileSchedule& schedule) {
  std::vector<QueryTile> order;
  for (std::int64_t block = 0; block < schedule.blocks(); ++block)
    order.push_back(schedule.tile(static_cast<int>(block)));
  return order;
}

TEST_CASE("tile schedule: every tile of every head is computed once", "[attention][prefill][schedule]") {
  for (const int heads : {1, 2, 7, 12}) {
    for (const int tiles : {1, 3, 8}) {
      for (int group_heads = 1; group_heads <= heads; ++group_heads) {
        CAPTURE(heads, tiles, group_heads);
        const TileSchedule schedule{.heads = heads, .tiles = tiles, .group_heads = group_heads};
        std::set<std::pair<int, int>> seen;
        for (const QueryTile& tile : order_of(schedule)) {
          REQUIRE(tile.head >= 0);
          REQUIRE(tile.head < heads);
          REQUIRE(tile.index >= 0);
          REQUIRE(tile.index < tiles);
          seen.emplace(tile.head, tile.index);
        }
        REQUIRE(seen.size() == static_cast<std::size_t>(heads * tiles));
      }
    }
  }
}

TEST_CASE("tile schedule: groups of heads follow each other, within one the last queries start first",
          "[attention][prefill][schedule]") {
  const TileSchedule schedule{.heads = 5, .tiles = 3, .group_heads = 2};
  std::vector<std::pair<int, int>> order;
  for (const QueryTile& tile : order_of(schedule)) order.emplace_back(tile.head, tile.index);
  CHECK(order == std::vector<std::pair<int, int>>{{0, 2},
                                                  {1, 2},
                                                  {0, 1},
                                                  {1, 1},
                                                  {0, 0},
                                                  {1, 0},  //
                                                  {2, 2},
                                                  {3, 2},
                                                  {2, 1},
                                                  {3, 1},
                                                  {2, 0},
                                                  {3, 0},  //
                                                  {4, 2},
                                                  {4, 1},
                                                  {4, 0}});
}

TEST_CASE("tile schedule: a group is the heads whose keys and values fit the cache, whole KV heads, at least one",
          "[attention][prefill][schedule]") {
  CHECK(make_tile_schedule(32, 4, 4, 1000, 2500).group_heads == 8);
  CHECK(make_tile_schedule(32, 4, 4, 5000, 2500).group_heads == 4);
  CHECK(make_tile_schedule(32, 4, 4, 1, 2500).group_heads == 32);
}

TEST_CASE("visible keys: causal is aligned at the last query and the last key", "[attention][prefill]") {
  const VisibleKeys more_keys(2, 5, true);
  CHECK(more_keys.last(0) == 3);
  CHECK(more_keys.last(1) == 4);
  const VisibleKeys more_queries(4, 2, true);
  CHECK(more_queries.last(0) < 0);
  CHECK(more_queries.last(1) < 0);
  CHECK(more_queries.last(2) == 0);
  CHECK(more_queries.last(3) == 1);
  CHECK(more_queries.last(100) == 1);  // rows of a tile past the last query
}

TEST_CASE("visible keys: without the mask every query sees every key, up to the longest lengths",
          "[attention][prefill]") {
  constexpr int kLongest = 1 << 30;
  const VisibleKeys all(kLongest, kLongest, false);
  CHECK(all.last(0) == kLongest - 1);
  CHECK(all.last(kLongest - 1) == kLongest - 1);
}

}  // namespace
}  // namespace inferometer
