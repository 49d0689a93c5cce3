// Which tile of queries a thread block computes.
//
// Two wishes decide the order in which tiles start. Causal tiles differ in length, so the longest (the last queries)
// start first and the short ones fill the gaps at the end. And tiles that run together should read the same keys and
// values, as far as the L2 holds them. So heads are cut into groups whose keys and values fit the L2; groups run one
// after the other, and within a group tiles go from the last queries to the first, all heads of one tile index
// together.
#pragma once

#include <algorithm>
#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct QueryTile {
  int head;   // of all batch * q_heads, batch slowest
  int index;  // along the queries
};

// blocks() is at most 2^31 - 1, as the x dimension of a grid is.
struct TileSchedule {
  int heads = 1;        // batch * q_heads
  int tiles = 1;        // per head
  int group_heads = 1;  // heads of every group but the last
  bool merged = false;  // the last has those too that are too few for a group: alone they would start their long tiles
                        // when the other SMs run out of work

  INFEROMETER_HOST_DEVICE std::int64_t blocks() const { return std::int64_t{heads} * tiles; }

  INFEROMETER_HOST_DEVICE QueryTile tile(int block) const {
    const int head_blocks = block / tiles;  // as if heads came one after the other: enough to tell the group
    int first_head = head_blocks - head_blocks % group_heads;
    if (merged && first_head > 0 && heads - first_head < group_heads) first_head -= group_heads;
    const int left = heads - first_head;
    const int in_group = left < (merged ? 2 : 1) * group_heads ? left : group_heads;
    const int rest = block - first_head * tiles;
    return {.head = first_head + rest % in_group, .index = tiles - 1 - rest / in_group};
  }
};

// `kv_head_bytes`: keys and values of one KV head; `heads_per_kv` q heads read them. `cache_bytes`: the L2's share
// to fill.
inline TileSchedule make_tile_schedule(std::int64_t heads, std::int64_t tiles, std::int64_t heads_per_kv,
                                       std::int64_t kv_head_bytes, std::int64_t cache_bytes) {
  const std::int64_t kv_heads = std::max<std::int64_t>(1, cache_bytes / std::max<std::int64_t>(1, kv_head_bytes));
  return {.heads = static_cast<int>(heads),
          .tiles = static_cast<int>(tiles),
          .group_heads = static_cast<int>(std::min(heads, kv_heads * heads_per_kv))};
}

// Tiles of a ragged batch are numbered with gaps, so that prefix sums alone tell where one lies: sequence b has the
// numbers from cu_q_lens[b] / tile_queries + b on, at least as many as it has tiles and at most one more.
INFEROMETER_HOST_DEVICE constexpr std::int64_t ragged_tile_numbers(std::int64_t total_q, std::int64_t batch,
                                                                   std::int64_t tile_queries) {
  return total_q / tile_queries + batch;
}

struct RaggedTile {
  int sequence;
  int first_query;  // of the sequence; at or past its end where no tile has the number
};

INFEROMETER_HOST_DEVICE constexpr RaggedTile ragged_tile(const std::int32_t* cu_q_lens, int batch, int number,
                                                         int tile_queries) {
  int low = 0;  // the last sequence whose numbers begin at or before `number` is in [low, high)
  int high = batch;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (cu_q_lens[middle] / tile_queries + middle <= number) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return {.sequence = low, .first_query = (number - cu_q_lens[low] / tile_queries - low) * tile_queries};
}

}  // namespace inferometer
