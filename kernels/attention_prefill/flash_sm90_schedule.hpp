// attention_prefill / flash_sm90: the order of tiles of equal sequences.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention_prefill/tile_schedule.cuh"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {

// Heads run together as far as half of the L2 holds their keys and values, but no more than it takes to give each SM a
// tile: more would ask for the keys of all of them at once and leave the memory idle afterwards; and full, no more than
// one sequence's (head_dim 128, 16 heads, at 512 and 1k keys: 464 and 574 TFLOP/s, with 33 and 17 heads 454 and 563).
// Causal tiles differ in length: twice as many leave short ones to fill the gaps, which pays where the keys are long in
// use (head_dim 128 and 256 at 2k keys: 588 for 580 and 623 for 600; at 512 310 for 318 and 320 for 331).
inline TileSchedule flash_sm90_schedule(const AttentionPrefillProblem& p, int tile_queries, std::int64_t sm_count,
                                        std::int64_t l2_bytes) {
  const std::int64_t tiles = (p.q_len + tile_queries - 1) / tile_queries;
  const std::int64_t heads_per_kv = p.q_heads / p.kv_heads;
  const std::int64_t kv_head_bytes =
      std::max<std::int64_t>(1, p.kv_len * (p.head_dim + p.v_dim()) * static_cast<std::int64_t>(dtype_bytes(p.dtype)));
  const std::int64_t wanted_tiles = (p.causal && p.kv_len > 1024 ? 2 : 1) * sm_count;
  const std::int64_t filling_heads = (wanted_tiles + tiles * heads_per_kv - 1) / (tiles * heads_per_kv);
  const std::int64_t kv_heads = p.causal ? filling_heads : std::min(filling_heads, p.kv_heads);
  TileSchedule schedule = make_tile_schedule(p.batch * p.q_heads, tiles, heads_per_kv, kv_head_bytes,
                                             std::min(l2_bytes / 2, kv_heads * kv_head_bytes));
  schedule.merged = true;
  return schedule;
}

}  // namespace inferometer
