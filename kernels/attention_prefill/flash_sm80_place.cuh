// attention_prefill / flash_sm80: where a thread block works.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm80_params.hpp"

namespace inferometer {

// Kept in shared memory and read where needed: the loop needs the registers.
struct BlockPlace {
  std::int64_t q_offset;    // of the tile's first element in q and o
  std::int64_t lse_offset;  // of its first row in lse
  std::int64_t kv_offset;   // of the first key's element in k and v
  int first_query;
  int queries;   // of the tile, less than its rows at the end
  int last_key;  // that any of its queries sees; negative: none
};

__device__ inline BlockPlace block_place(const FlashParams& p, int tile_queries) {
  const QueryTile tile = p.schedule.tile(static_cast<int>(blockIdx.x));
  const std::int64_t batch = tile.head / p.q_heads;
  const std::int64_t head = tile.head % p.q_heads;
  BlockPlace place;
  place.first_query = tile.index * tile_queries;
  place.queries = min(tile_queries, p.q_len - place.first_query);
  place.last_key = p.visible.last(place.first_query + place.queries - 1);
  place.q_offset = (batch * p.q_len + place.first_query) * p.q_stride + head * p.head_dim;
  place.lse_offset = std::int64_t{tile.head} * p.q_len + place.first_query;
  place.kv_offset = batch * p.visible.kv_len * p.kv_stride + head / p.heads_per_kv * p.head_dim;
  return place;
}

// kv_offset is of k alone. Paged, both offsets are of the pool's first slot.
struct GeneralBlockPlace : BlockPlace {
  std::int64_t v_offset;
  std::int64_t o_offset;
  const std::int32_t* blocks;  // the sequence's row of the block table; contiguous: null
  int first_key;               // that any of the tile's queries sees
  int q_len;                   // of the sequence
  int kv_len;
};

// `queries` is 0 or less for numbers that no tile has.
__device__ inline GeneralBlockPlace block_place(const GeneralFlashParams& p, int tile_queries) {
  const QueryTile tile = p.schedule.tile(static_cast<int>(blockIdx.x));
  const bool ragged = p.cu_q_lens != nullptr;
  const RaggedTile start = ragged ? ragged_tile(p.cu_q_lens, p.batch, tile.index, tile_queries)
                                  : RaggedTile{tile.head / p.q_heads, tile.index * tile_queries};
  const int batch = start.sequence;
  const std::int64_t head = tile.head % p.q_heads;
  const std::int64_t q_row = ragged ? p.cu_q_lens[batch] : std::int64_t{batch} * p.q_len;
  const std::int64_t kv_row = ragged ? p.cu_kv_lens[batch] : std::int64_t{batch} * p.kv_len;
  const int q_len = ragged ? p.cu_q_lens[batch + 1] - static_cast<int>(q_row) : p.q_len;
  const int kv_len = ragged ? p.cu_kv_lens[batch + 1] - static_cast<int>(kv_row) : p.kv_len;
  const bool paged = p.block_table != nullptr;

  GeneralBlockPlace place;
  place.first_query = start.first_query;
  place.queries = min(tile_queries, q_len - place.first_query);
  const VisibleKeys visible(q_len, kv_len, p.causal, p.window_left);
  place.first_key = visible.first(place.first_query);
  place.last_key = visible.last(place.first_query + place.queries - 1);
  place.q_len = q_len;
  place.kv_len = kv_len;
  place.q_offset = (q_row + place.first_query) * p.q_stride + head * p.head_dim;
  place.o_offset = (q_row + place.first_query) * p.o_stride + head * p.v_dim;
  place.lse_offset = (ragged ? head * p.total_q + q_row : std::int64_t{tile.head} * p.q_len) + place.first_query;
  place.kv_offset = (paged ? 0 : kv_row * p.kv_stride) + head / p.heads_per_kv * p.head_dim;
  place.v_offset = (paged ? 0 : kv_row * p.v_stride) + head / p.heads_per_kv * p.v_dim;
  place.blocks = paged ? p.block_table + std::int64_t{batch} * p.max_blocks : nullptr;
  return place;
}

// What both kinds of problem have, each in its own place.
__device__ inline VisibleKeys visible_keys(const FlashParams& p, const BlockPlace&) { return p.visible; }
__device__ inline VisibleKeys visible_keys(const GeneralFlashParams& p, const GeneralBlockPlace& place) {
  return VisibleKeys(place.q_len, place.kv_len, p.causal, p.window_left);
}
__device__ inline int first_key(const BlockPlace&) { return 0; }
__device__ inline int first_key(const GeneralBlockPlace& place) { return place.first_key; }
__device__ inline std::int64_t output_offset(const BlockPlace& place) { return place.q_offset; }
__device__ inline std::int64_t output_offset(const GeneralBlockPlace& place) { return place.o_offset; }
__device__ inline std::int64_t output_stride(const FlashParams& p) { return p.q_stride; }
__device__ inline std::int64_t output_stride(const GeneralFlashParams& p) { return p.o_stride; }
__device__ inline int output_dim(const FlashParams& p) { return p.head_dim; }
__device__ inline int output_dim(const GeneralFlashParams& p) { return p.v_dim; }

}  // namespace inferometer
