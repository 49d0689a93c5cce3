// attention_prefill / flash_sm80: in which order tiles start.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/attention_prefill/tile_schedule.cuh"

namespace inferometer {

// Full tiles are equally long: heads run together as far as `cache_bytes` hold their keys and values. Causal ones are
// not: a last group of few heads would start its longest tiles when other SMs run out of work. So its heads are as few
// groups as have that many each, all alike, and what is left over joins the last.
inline TileSchedule flash_sm80_schedule(bool causal, std::int64_t heads, std::int64_t tiles, std::int64_t heads_per_kv,
                                        std::int64_t kv_head_bytes, std::int64_t cache_bytes) {
  TileSchedule schedule = make_tile_schedule(heads, tiles, heads_per_kv, kv_head_bytes, cache_bytes);
  if (!causal) return schedule;
  const std::int64_t kv_heads = heads / heads_per_kv;
  const std::int64_t groups = std::max<std::int64_t>(1, heads / schedule.group_heads);
  schedule.group_heads = static_cast<int>((kv_heads + groups - 1) / groups * heads_per_kv);
  schedule.merged = true;
  return schedule;
}

}  // namespace inferometer
