// attention_prefill / flash_sm90: which tile of queries comes next, and where its outputs lie.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm90_params.hpp"
#include "kernels/attention_prefill/flash_sm90_work.hpp"

namespace inferometer {

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
  } else {
    if (index >= p.schedule.blocks()) return work;
    const QueryTile tile = p.schedule.tile(static_cast<int>(index));
    work.sequence = tile.head / p.q_heads;
    work.head = tile.head % p.q_heads;
    work.first_query = tile.index * Shape::kTileQ;
  }
  work.valid = true;
  work.kv_head = work.head / p.heads_per_kv;
  work.queries = min(Shape::kTileQ, queries - work.first_query);
  work.keys = VisibleKeys(queries, kv_len, p.causal, p.window_left);
  return work;
}

// Where the rows of a warpgroup begin in o and lse.
template <class Shape>
__device__ inline void place_outputs(const FlashSm90Params& p, const PrefillWork& work, int warpgroup,
                                     WarpgroupWork& mine) {
  const std::int64_t row = work.q_token + work.first_query + 64 * warpgroup;
  mine.o_offset =
      (row + std::int64_t{work.sequence} * p.sequence_rows) * p.o_stride + std::int64_t{work.head} * Shape::kVDim;
  mine.lse_offset = row + work.head * p.lse_head_stride + work.sequence * p.lse_sequence_stride;
}

}  // namespace inferometer
