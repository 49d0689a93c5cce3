// Which blocks of keys the tiles and warpgroups of flash_sm90 go through, against the definition of what a query sees,
// and the order of its tiles.
#include "kernels/attention_prefill/flash_sm90_work.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "kernels/attention_prefill/flash_sm90_config.hpp"
#include "kernels/attention_prefill/flash_sm90_ring.hpp"
#include "kernels/attention_prefill/flash_sm90_schedule.hpp"
#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

struct Sequence {
  int q_len;
  int kv_len;
  bool causal;
  int window;

  // reference/attention_prefill/problem.hpp
  bool sees(int query, int key) const {
    const int own = query + kv_len - q_len;
    return key < kv_len && (!causal || (key <= own && (window < 0 || key >= own - window)));
  }
};

std::vector<Sequence> sequences() {
  std::vector<Sequence> all;
  for (const int q_len : {1, 2, 63, 64, 65, 128, 129, 191, 192, 193, 260})
    for (const int kv_len : {0, 1, 15, 16, 17, 32, 63, 100, 192, 241}) {
      all.push_back({q_len, kv_len, false, -1});
      for (const int window : {-1, 0, 1, 14, 15, 16, 40, 100, 1000}) all.push_back({q_len, kv_len, true, window});
    }
  return all;
}

template <class Shape>
std::vector<PrefillWork> tiles_of(const Sequence& sequence) {
  std::vector<PrefillWork> tiles;
  for (int first = 0; first < sequence.q_len; first += Shape::kTileQ) {
    PrefillWork work;
    work.valid = true;
    work.first_query = first;
    work.queries = std::min(Shape::kTileQ, sequence.q_len - first);
    work.keys = VisibleKeys(sequence.q_len, sequence.kv_len, sequence.causal, sequence.window);
    tiles.push_back(work);
  }
  return tiles;
}

// How many of a warpgroup's rows see a key, for each key of a block.
struct BlockSeen {
  int least;
  int most;
};
BlockSeen rows_that_see(const Sequence& sequence, int first_query, int rows, int block, int tile_kv) {
  BlockSeen seen{rows, 0};
  for (int key = block * tile_kv; key < (block + 1) * tile_kv; ++key) {
    int count = 0;
    for (int row = 0; row < rows; ++row) count += sequence.sees(first_query + row, key) ? 1 : 0;
    seen.least = std::min(seen.least, count);
    seen.most = std::max(seen.most, count);
  }
  return seen;
}

// The highest block at which, blocks being done from the last to the first, every row has seen a key; -1: none.
int settled_block(const Sequence& sequence, int first_query, int rows, int tile_kv) {
  int settled = sequence.kv_len;
  for (int row = 0; row < rows; ++row) {
    int key = sequence.kv_len - 1;
    while (key >= 0 && !sequence.sees(first_query + row, key)) --key;
    settled = std::min(settled, key < 0 ? -1 : key / tile_kv);
  }
  return settled;
}

// Blocks of 16 keys beside the real shapes' long ones: warpgroups of a tile then differ by several.
using ShortBlocks = FlashSm90Shape<64, 64, 3, 16, 2>;

template <class Shape>
void check_against_definition() {
  for (const Sequence& sequence : sequences()) {
    CAPTURE(Shape::kTileKv, sequence.q_len, sequence.kv_len, sequence.causal, sequence.window);
    const int blocks = sequence.kv_len / Shape::kTileKv + 1;
    for (const PrefillWork& tile : tiles_of<Shape>(sequence)) {
      int tile_begin = blocks;
      int tile_end = 0;
      for (int w = 0; w < Shape::kWarpgroups; ++w) {
        CAPTURE(tile.first_query, w);
        const WarpgroupWork mine = warpgroup_keys<Shape>(tile, w);
        const int first_query = tile.first_query + 64 * w;
        const int rows = std::clamp(sequence.q_len - first_query, 0, 64);
        REQUIRE(mine.queries == rows);
        int begin = blocks;
        int end = 0;
        bool masks_where_needed = true;
        CHECK((rows == 0 || mine.settled == settled_block(sequence, first_query, rows, Shape::kTileKv)));
        for (int block = 0; block < blocks; ++block) {
          const BlockSeen seen = rows_that_see(sequence, first_query, rows, block, Shape::kTileKv);
          if (seen.most == 0) continue;
          begin = std::min(begin, block);
          end = block + 1;
          const bool clean = block >= mine.clean_begin && block < mine.clean_begin + mine.clean_count;
          masks_where_needed = masks_where_needed && clean == (seen.least == rows);
        }
        CHECK(masks_where_needed);
        if (end == 0) {
          CHECK(mine.block < mine.last_block);
        } else {
          CHECK(mine.last_block == begin);
          CHECK(mine.block == end - 1);
        }
        tile_begin = std::min(tile_begin, begin);
        tile_end = std::max(tile_end, end);
      }
      CHECK(tile_blocks<Shape>(tile).empty() == (tile_end == 0));
      for (int w = 0; w < Shape::kWarpgroups; ++w) {
        CAPTURE(tile.first_query, w);
        const WarpgroupWork mine = warpgroup_keys<Shape>(tile, w);
        const int own = std::max(0, mine.block - mine.last_block + 1);
        CHECK(mine.skipped_before >= 0);
        CHECK(mine.skipped_after >= 0);
        CHECK(mine.skipped_before + own + mine.skipped_after == std::max(0, tile_end - tile_begin));
        if (own > 0) CHECK(mine.block + mine.skipped_before == tile_end - 1);
      }
    }
  }
}

TEST_CASE(
    "flash_sm90: warpgroups go through the blocks that their rows see, and mask those that not all rows see whole",
    "[attention][prefill][flash_sm90]") {
  check_against_definition<ShortBlocks>();
  check_against_definition<FlashSm90D64Teams>();
  check_against_definition<FlashSm90D128Short>();
  check_against_definition<FlashSm90D128Long>();
}

TEST_CASE("flash_sm90: the keys that a warpgroup's row masks by are those that its query sees",
          "[attention][prefill][flash_sm90]") {
  for (const Sequence& sequence : sequences()) {
    CAPTURE(sequence.q_len, sequence.kv_len, sequence.causal, sequence.window);
    bool same = true;
    for (const PrefillWork& tile : tiles_of<ShortBlocks>(sequence))
      for (int w = 0; w < ShortBlocks::kWarpgroups; ++w) {
        const WarpgroupWork mine = warpgroup_keys<ShortBlocks>(tile, w);
        for (int row = 0; row < mine.queries; ++row)
          for (int key = 0; key < sequence.kv_len + ShortBlocks::kTileKv; ++key)
            same = same && sequence.sees(tile.first_query + 64 * w + row, key) ==
                               (key >= mine.keys.first(row) && key <= mine.keys.last(row));
      }
    CHECK(same);
  }
}

TEST_CASE("flash_sm90: a ring names its stages in turn, and the parity changes each time round",
          "[attention][prefill][flash_sm90]") {
  Ring<3> three;
  Ring<1> one;
  for (std::uint32_t use = 0; use < 12; ++use) {
    CHECK(three.stage() == use % 3);
    CHECK(three.parity() == (use / 3) % 2);
    CHECK(one.stage() == 0);
    CHECK(one.parity() == use % 2);
    three.advance();
    one.advance();
  }
}

AttentionPrefillProblem long_problem(std::int64_t q_heads, std::int64_t kv_heads, std::int64_t length, bool causal) {
  AttentionPrefillProblem p;
  p.q_heads = q_heads;
  p.kv_heads = kv_heads;
  p.q_len = p.kv_len = length;
  p.head_dim = 128;
  p.causal = causal;
  return p;
}

TEST_CASE("flash_sm90: its schedule holds every tile of every head once, in groups of whole KV heads",
          "[attention][prefill][flash_sm90][schedule]") {
  for (const std::int64_t batch : {1, 3})
    for (const auto& [q_heads, kv_heads] : {std::pair{1, 1}, std::pair{8, 8}, std::pair{12, 4}, std::pair{7, 1}})
      for (const std::int64_t q_len : {1, 128, 129, 1000})
        for (const std::int64_t kv_len : {0, 1, 4096, 1 << 20})
          for (const bool causal : {false, true}) {
            CAPTURE(batch, q_heads, kv_heads, q_len, kv_len, causal);
            AttentionPrefillProblem p = long_problem(q_heads, kv_heads, q_len, causal);
            p.batch = batch;
            p.kv_len = kv_len;
            const TileSchedule schedule = flash_sm90_schedule(p, 128, 132, 50 << 20);
            REQUIRE(schedule.blocks() == batch * q_heads * ((q_len + 127) / 128));
            CHECK(schedule.group_heads % (q_heads / kv_heads) == 0);
            std::set<std::pair<int, int>> seen;
            for (std::int64_t i = 0; i < schedule.blocks(); ++i) {
              const QueryTile tile = schedule.tile(static_cast<int>(i));
              REQUIRE(tile.head < batch * q_heads);
              REQUIRE(static_cast<std::int64_t>(tile.index) * 128 < q_len);
              seen.emplace(tile.head, tile.index);
            }
            CHECK(static_cast<std::int64_t>(seen.size()) == schedule.blocks());
          }
}

// The time from the first tile to the last over the mean of all SMs', when each takes a tile as it comes to the next:
// a tile costs its blocks of keys and, at head_dim 128, as much as 2 blocks more.
double longest_over_mean(const AttentionPrefillProblem& p, std::int64_t l2_bytes) {
  constexpr int kSms = 132;
  constexpr int kTileQ = 128;
  const TileSchedule schedule = flash_sm90_schedule(p, kTileQ, kSms, l2_bytes);
  std::vector<int> busy_until(kSms, 0);
  int sum = 0;
  for (std::int64_t i = 0; i < schedule.blocks(); ++i) {
    const int cost = schedule.tile(static_cast<int>(i)).index + 1 + 2;
    *std::min_element(busy_until.begin(), busy_until.end()) += cost;
    sum += cost;
  }
  return *std::max_element(busy_until.begin(), busy_until.end()) * double{kSms} / sum;
}

TEST_CASE("flash_sm90: causal tiles of many heads leave SMs idle for less than 4 % of the time",
          "[attention][prefill][flash_sm90][schedule]") {
  constexpr std::int64_t kL2 = 60 << 20;
  for (const auto& [batch, length] :
       {std::pair{32, 512}, std::pair{16, 1024}, std::pair{8, 2048}, std::pair{4, 4096}}) {
    AttentionPrefillProblem p = long_problem(16, 16, length, true);
    p.batch = batch;
    CAPTURE(batch, length);
    CHECK(longest_over_mean(p, kL2) < 1.04);
  }
  CHECK(longest_over_mean(long_problem(64, 8, 2048, true), kL2) < 1.04);
  CHECK(longest_over_mean(long_problem(64, 8, 4096, true), kL2) < 1.04);
}

TEST_CASE(
    "flash_sm90: heads run together that give each SM a tile, of one sequence; two when causal above 1k keys; as far "
    "as half the L2 holds them",
    "[attention][prefill][flash_sm90][schedule]") {
  constexpr std::int64_t kL2 = 50 << 20;
  CHECK(flash_sm90_schedule(long_problem(32, 32, 8192, false), 128, 132, kL2).group_heads == 3);  // of 64 tiles
  CHECK(flash_sm90_schedule(long_problem(32, 32, 8192, true), 128, 132, kL2).group_heads == 5);
  CHECK(flash_sm90_schedule(long_problem(32, 8, 8192, true), 128, 132, kL2).group_heads == 8);  // 2 KV heads of 4
  CHECK(flash_sm90_schedule(long_problem(32, 32, 512, false), 128, 132, kL2).group_heads == 32);
  AttentionPrefillProblem batch = long_problem(16, 16, 512, false);
  batch.batch = 32;
  CHECK(flash_sm90_schedule(batch, 128, 132, kL2).group_heads == 16);
  batch.causal = true;
  CHECK(flash_sm90_schedule(batch, 128, 132, kL2).group_heads == 33);
  batch.q_len = batch.kv_len = 2048;
  CHECK(flash_sm90_schedule(batch, 128, 132, kL2).group_heads == 17);
  AttentionPrefillProblem few_queries = long_problem(32, 32, 1 << 15, false);  // 16 MB of keys and values a head
  few_queries.q_len = 128;
  CHECK(flash_sm90_schedule(few_queries, 128, 132, kL2).group_heads == 1);
}

}  // namespace
}  // namespace inferometer
