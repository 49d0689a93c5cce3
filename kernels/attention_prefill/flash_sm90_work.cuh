// attention_prefill / flash_sm90: which tile of queries comes next, where it lies and what it sees.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm90_params.hpp"

namespace inferometer {

// Query i of a sequence sees keys first(i) .. last(i); none when last(i) < first(i).
struct KeyRange {
  int kv_len = 0;
  int diagonal = 0;  // query 0 would see keys up to here, were they all there
  int window_left = -1;

  INFEROMETER_HOST_DEVICE int last(int query) const {
    const int limit = query + diagonal;
    return limit < kv_len ? limit : kv_len - 1;
  }
  INFEROMETER_HOST_DEVICE int first(int query) const {
    const int limit = query + diagonal - window_left;
    return window_left < 0 || limit < 0 ? 0 : limit;
  }
};

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
INFEROMETER_HOST_DEVICE KeyBlocks key_blocks(const KeyRange& keys, int first_query, int queries) {
  if (queries <= 0) return {};
  const int last_query = first_query + queries - 1;
  const int seen_begin = keys.first(first_query);
  const int seen_end = keys.last(last_query) + 1;
  if (seen_end <= seen_begin) return {};
  const int all_begin = keys.first(last_query);  // every query sees keys all_begin .. all_end - 1
  const int all_end = keys.last(first_query) + 1;
  return {.begin = seen_begin / kTileKv,
          .end = (seen_end + kTileKv - 1) / kTileKv,
          .clean_begin = (all_begin + kTileKv - 1) / kTileKv,
          .clean_end = all_end < 0 ? 0 : all_end / kTileKv};
}

// What a math warpgroup must know of its 64 rows of a tile.
struct WarpgroupWork {
  int block = 0;        // the first of its blocks of keys; they go down
  int last_block = 0;   // below `block`: these rows do not exist or see nothing
  int clean_begin = 0;  // clean_count blocks from here hold only keys that all the rows see
  int clean_count = 0;
  int skipped_before = 0;  // blocks that other warpgroups of the tile see, above these rows' and below
  int skipped_after = 0;
  int queries = 0;       // rows that exist, at most 64
  int query_to_key = 0;  // the last key that the first row would see, were all keys there
  int kv_len = 0;
  std::int64_t o_offset = 0;    // of the first row's element in o
  std::int64_t lse_offset = 0;  // of the first row in lse
};

// A tile of queries of one head, as the copying warp finds it.
struct PrefillWork {
  bool valid = false;  // false: no tile is left
  int sequence = 0;
  int head = 0;
  int first_query = 0;
  int queries = 0;  // of the tile, less than kTileQ at the end
  int q_token = 0;  // the sequence's first token in q, and in k and v when these are packed
  int kv_token = 0;
  KeyRange keys;
  std::int64_t o_offset = 0;    // of the tile's first row in o, its head included
  std::int64_t lse_offset = 0;  // and in lse
};

template <class Shape>
INFEROMETER_HOST_DEVICE KeyBlocks tile_blocks(const PrefillWork& work) {
  return key_blocks<Shape::kTileKv>(work.keys, work.first_query, work.queries);
}

template <class Shape>
INFEROMETER_HOST_DEVICE WarpgroupWork warpgroup_work(const PrefillWork& work, int warpgroup, std::int64_t o_stride) {
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
  mine.query_to_key = work.first_query + first_row + work.keys.diagonal;
  mine.kv_len = work.keys.kv_len;
  mine.o_offset = work.o_offset + first_row * o_stride;
  mine.lse_offset = work.lse_offset + first_row;
  return mine;
}

#ifdef __CUDACC__

// The tile `index` of a batch whose sequences have lengths of their own. Called by a whole warp, which looks at 32
// sequences at a time; tiles of one sequence follow each other, the last queries first, all heads of one tile together.
template <int kTileQ>
__device__ inline bool find_ragged_tile(const FlashSm90Params& p, std::uint32_t index, PrefillWork& work,
                                        int& sequence_queries) {
  constexpr unsigned kWholeWarp = 0xffffffffU;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::int64_t before = 0;  // tiles of the sequences already looked at
  for (int first = 0; first < p.batch; first += 32) {
    const int sequence = first + lane;
    const int begin = sequence < p.batch ? p.cu_q_lens[sequence] : 0;
    const int length = sequence < p.batch ? p.cu_q_lens[sequence + 1] - begin : 0;
    const std::int64_t tiles = std::int64_t{(length + kTileQ - 1) / kTileQ} * p.q_heads;
    std::int64_t through = tiles;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::int64_t other = __shfl_up_sync(kWholeWarp, through, step);
      if (lane >= step) through += other;
    }
    const unsigned holders = __ballot_sync(kWholeWarp, before + through > index);
    if (holders != 0) {
      const int owner = __ffs(static_cast<int>(holders)) - 1;
      const std::int64_t start = before + __shfl_sync(kWholeWarp, through - tiles, owner);
      const int rest = static_cast<int>(index - start);
      work.sequence = first + owner;
      work.q_token = __shfl_sync(kWholeWarp, begin, owner);
      sequence_queries = __shfl_sync(kWholeWarp, length, owner);
      work.head = rest % p.q_heads;
      work.first_query = ((sequence_queries + kTileQ - 1) / kTileQ - 1 - rest / p.q_heads) * kTileQ;
      return true;
    }
    before += __shfl_sync(kWholeWarp, through, 31);
  }
  return false;
}

// Called by a whole warp, all lanes with the same index.
template <class Shape>
__device__ inline PrefillWork find_work(const FlashSm90Params& p, std::uint32_t index) {
  PrefillWork work;
  int queries = p.q_len;
  int kv_len = p.kv_len;
  if (p.cu_q_lens != nullptr) {
    if (!find_ragged_tile<Shape::kTileQ>(p, index, work, queries)) return work;
    const int begin = p.cu_kv_lens[work.sequence];
    kv_len = p.cu_kv_lens[work.sequence + 1] - begin;
    if (p.block_table == nullptr) work.kv_token = begin;
    work.lse_offset = work.head * p.total_q + work.q_token;
  } else {
    if (index >= p.schedule.blocks()) return work;
    const QueryTile tile = p.schedule.tile(static_cast<int>(index));
    work.sequence = tile.head / p.q_heads;
    work.head = tile.head % p.q_heads;
    work.first_query = tile.index * Shape::kTileQ;
    work.lse_offset = std::int64_t{tile.head} * p.q_len;
  }
  work.valid = true;
  work.queries = min(Shape::kTileQ, queries - work.first_query);
  work.keys = {.kv_len = kv_len, .diagonal = p.causal ? kv_len - queries : kv_len, .window_left = p.window_left};
  const std::int64_t row =
      (p.cu_q_lens != nullptr ? work.q_token : std::int64_t{work.sequence} * p.q_len) + work.first_query;
  work.o_offset = row * p.o_stride + std::int64_t{work.head} * Shape::kVDim;
  work.lse_offset += work.first_query;
  return work;
}

#endif

}  // namespace inferometer
