// The order in which the flash kernels compute their tiles of queries, and which keys a query sees.
#include "kernels/attention_prefill/tile_schedule.cuh"

#include <cstdint>
#include <limits>
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
      for (int i = 0; i < 2 * heads; ++i) {
        const int group_heads = i / 2 + 1;
        const bool merged = i % 2 == 1;
        CAPTURE(heads, tiles, group_heads, merged);
        const TileSchedule schedule{.heads = heads, .tiles = tiles, .group_heads = group_heads, .merged = merged};
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

TEST_CASE("tile schedule: merged, the last group takes the heads that are too few for one of their own",
          "[attention][prefill][schedule]") {
  const TileSchedule schedule{.heads = 5, .tiles = 2, .group_heads = 2, .merged = true};
  std::vector<std::pair<int, int>> order;
  for (const QueryTile& tile : order_of(schedule)) order.emplace_back(tile.head, tile.index);
  CHECK(order == std::vector<std::pair<int, int>>{{0, 1},
                                                  {1, 1},
                                                  {0, 0},
                                                  {1, 0},  //
                                                  {2, 1},
                                                  {3, 1},
                                                  {4, 1},
                                                  {2, 0},
                                                  {3, 0},
                                                  {4, 0}});
}

TEST_CASE("tile schedule: a group is the heads whose keys and values fit the cache, whole KV heads, at least one",
          "[attention][prefill][schedule]") {
  CHECK(make_tile_schedule(32, 4, 4, 1000, 2500).group_heads == 8);
  CHECK(make_tile_schedule(32, 4, 4, 5000, 2500).group_heads == 4);
  CHECK(make_tile_schedule(32, 4, 4, 1, 2500).group_heads == 32);
}

TEST_CASE("tile schedule: prefix sums alone number the tiles of a ragged batch, each once",
          "[attention][prefill][schedule]") {
  constexpr int kTile = 64;
  const std::vector<std::vector<int>> batches = {
      {0}, {1}, {64}, {65}, {0, 0, 3}, {64, 0, 64, 1}, {63, 65, 200, 0, 0, 128, 1}, {100, 100, 100, 100, 100}};
  for (const std::vector<int>& lengths : batches) {
    std::vector<std::int32_t> sums{0};
    for (const int length : lengths) sums.push_back(sums.back() + length);
    const auto batch = static_cast<int>(lengths.size());
    std::set<std::pair<int, int>> seen;
    int empty = 0;
    for (int number = 0; number < ragged_tile_numbers(sums.back(), batch, kTile); ++number) {
      const RaggedTile tile = ragged_tile(sums.data(), batch, number, kTile);
      CAPTURE(number, tile.sequence, tile.first_query);
      REQUIRE(tile.sequence < batch);
      REQUIRE(tile.first_query >= 0);
      if (tile.first_query >= lengths[static_cast<std::size_t>(tile.sequence)]) {
        ++empty;
        continue;
      }
      REQUIRE(tile.first_query % kTile == 0);
      REQUIRE(seen.emplace(tile.sequence, tile.first_query).second);
    }
    std::size_t tiles = 0;
    for (const int length : lengths) tiles += static_cast<std::size_t>((length + kTile - 1) / kTile);
    CHECK(seen.size() == tiles);
    CHECK(empty <= batch);
  }
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

TEST_CASE("visible keys: a window reaches from a query's own key so many back", "[attention][prefill]") {
  const VisibleKeys keys(10, 15, true, 3);
  CHECK(keys.first(0) == 2);  // own key 5
  CHECK(keys.last(0) == 5);
  CHECK(keys.first(9) == 11);
  CHECK(VisibleKeys(10, 10, true, 0).first(4) == 4);
  CHECK(VisibleKeys(10, 10, true, 7).first(6) == 0);
  constexpr int kLongest = 1 << 30;
  CHECK(VisibleKeys(1, kLongest, true, kLongest - 2).first(0) == 1);
  CHECK(VisibleKeys(1, kLongest, true, std::numeric_limits<int>::max()).first(0) == 0);
  CHECK(VisibleKeys(kLongest, 1, true, kLongest - 1).first(kLongest - 1) == 0);
  CHECK(VisibleKeys(kLongest, kLongest, false).first(kLongest - 1) == 0);
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
