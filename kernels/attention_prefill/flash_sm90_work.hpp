// attention_prefill / flash_sm90: a tile of queries, and which blocks of keys it and its warpgroups see. For host and
// device.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"
#include "kernels/attention_prefill/visible_keys.cuh"

namespace inferometer {

// Blocks of kTileKv keys, begin .. end - 1, that some of a range of queries see; of these, blocks below clean_begin or
// from clean_end on hold keys that not all of the queries see.
struct KeyBlocks {
  int begin = 0;
  int end = 0;
  int clean_begin = 0;
  int clean_end = 0;

  INFEROMETER_HOST_DEVICE bool empty() const { return end <= begin; }
};

template <int kTileKv>
INFEROMETER_HOST_DEVICE KeyBlocks key_blocks(const VisibleKeys& keys, int first_query, int queries) {
  if (queries <= 0) return {};
  const int last_query = first_query + queries - 1;
  const int seen_begin = keys.first(first_query);
  const int seen_end = keys.last(last_query) + 1;
  if (seen_end <= seen_begin) return {};
  const int all_begin = keys.first(last_query);  // every query sees keys all_begin .. all_end - 1
  const int all_end = keys.last(first_query) + 1;
  const auto blocks = [](int keys_below) {  // whole ones; an unsigned division takes fewer registers
    return static_cast<int>(static_cast<unsigned>(keys_below) / kTileKv);
  };
  return {.begin = blocks(seen_begin),
          .end = blocks(seen_end + kTileKv - 1),
          .clean_begin = blocks(all_begin + kTileKv - 1),
          .clean_end = all_end < 0 ? 0 : blocks(all_end)};
}

// A tile of queries of one head, as TileFinder finds it.
struct PrefillWork {
  bool valid = false;  // false: no tile is left
  int sequence = 0;
  int head = 0;
  int first_query = 0;
  int queries = 0;   // of the tile, less than kTileQ at the end
  int q_token = 0;   // ragged: the sequence's first token in q, else 0
  int kv_token = 0;  // ragged and contiguous: its first token in k and v, else 0
  VisibleKeys keys;
  int kv_head = 0;  // that `head` reads
};

template <class Shape>
INFEROMETER_HOST_DEVICE KeyBlocks tile_blocks(const PrefillWork& work) {
  return key_blocks<Shape::kTileKv>(work.keys, work.first_query, work.queries);
}

// What a math warpgroup must know of its 64 rows of a tile.
struct WarpgroupWork {
  int block = 0;        // the first of its blocks of keys; they go down
  int last_block = 0;   // below `block`: these rows do not exist or see nothing
  int clean_begin = 0;  // clean_count blocks from here hold only keys that all the rows see
  int clean_count = 0;
  int settled = -1;        // once this block or one below it is done, each row has seen a key; -1: maybe never
  int skipped_before = 0;  // blocks that other warpgroups of the tile see, above these rows' and below
  int skipped_after = 0;
  int queries = 0;              // rows that exist, at most 64
  VisibleKeys keys;             // query 0 is the first row
  std::int64_t o_offset = 0;    // of the first row's element in o
  std::int64_t lse_offset = 0;  // of the first row in lse
};

// All but the offsets.
template <class Shape>
INFEROMETER_HOST_DEVICE WarpgroupWork warpgroup_keys(const PrefillWork& work, int warpgroup) {
  const int first_row = 64 * warpgroup;
  const int left = work.queries - first_row;
  const KeyBlocks tile = tile_blocks<Shape>(work);
  WarpgroupWork mine;
  mine.queries = left < 0 ? 0 : left < 64 ? left : 64;
  const KeyBlocks own = key_blocks<Shape::kTileKv>(work.keys, work.first_query + first_row, mine.queries);
  mine.block = own.end - 1;
  mine.last_block = own.begin;
  mine.clean_begin = own.clean_begin;
  mine.clean_count = own.clean_end > own.clean_begin ? own.clean_end - own.clean_begin : 0;
  mine.skipped_before = tile.end - (own.empty() ? tile.begin : own.end);
  mine.skipped_after = own.empty() ? 0 : own.begin - tile.begin;
  mine.keys = work.keys.from(work.first_query + first_row);
  // The first row's last key is the lowest of all rows' last.
  const int last_key = mine.keys.last(0);
  mine.settled =
      last_key < mine.keys.first(0) ? -1 : static_cast<int>(static_cast<unsigned>(last_key) / Shape::kTileKv);
  return mine;
}

}  // namespace inferometer
