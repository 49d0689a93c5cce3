// attention_prefill / flash_sm90: which of its shapes a problem takes where a width of heads has several.
//
// TFLOP/s of one H200 (132 SMs), f16, 16384 tokens, q_heads * head_dim = 2048, in one process with cuDNN; the winner is
// starred. Shapes: flash_sm90_config.hpp.
#pragma once

#include <cstdint>

#include "reference/attention_prefill/problem.hpp"

namespace inferometer {

// head_dim 64: two teams of 128 queries for few keys.
//
//   keys             full 512     1k     2k     8k   causal 512     1k     2k     8k
//   teams                *409   *468    498    517         *273   *367   *438    487
//   192 queries           394    461   *506   *543          223    324    431   *504
inline bool flash_sm90_d64_takes_teams(const AttentionPrefillProblem& p) {
  return p.kv_len <= (p.causal ? 2048 : 1024);
}

enum class FlashSm90D128Tiles { short_tiles, long_tiles, paged };

// Whether tiles of 192 queries leave so many SMs idle in their last round that tiles of 128 are faster by more than
// they lose otherwise, 5 %. Of 32 heads: true for 512 queries against 8k keys (640 for 500) and for 2k against 32k (702
// for 677), false for 4 x 2048 against 8k (680 for 705).
inline bool flash_sm90_favours_short_tiles(const AttentionPrefillProblem& p, std::int64_t sm_count) {
  const auto rounds_of_queries = [&](std::int64_t tile_queries) {
    const std::int64_t tiles = p.batch * p.q_heads * ((p.q_len + tile_queries - 1) / tile_queries);
    return (tiles + sm_count - 1) / sm_count * tile_queries;
  };
  return !p.ragged() && rounds_of_queries(128) * 21 < rounds_of_queries(192) * 20;
}

// head_dim 128; "maxima": the shape that takes them of every block, as problems with a soft cap do. It was measured
// in a run of its own, where clocks may have differed.
//
//   keys          full 512     2k     8k   causal 512     1k     2k     4k     8k   64 heads over 8: causal 2k
//   maxima             486    645    631          309    427    522           614
//   short_tiles       *496    678    691         *318   *458   *588    665    689                         *570
//   long_tiles               *700   *713                        582   *674   *714                          561
//
// Paged, against contiguous short_tiles: blocks of 16 tokens at 0.93, of 64 at 0.95, of 256 at 0.96. With a box for
// each panel of a head they were at 0.60 to 0.66, 0.81 to 0.85 and 0.85: the start of a copy is what costs.
inline FlashSm90D128Tiles flash_sm90_d128_tiles(const AttentionPrefillProblem& p, std::int64_t sm_count) {
  using Tiles = FlashSm90D128Tiles;
  if (p.paged() && p.block_size % 8 == 0) return Tiles::paged;
  if (p.paged() || p.kv_len < (p.causal ? 4096 : 2048)) return Tiles::short_tiles;
  return flash_sm90_favours_short_tiles(p, sm_count) ? Tiles::short_tiles : Tiles::long_tiles;
}

}  // namespace inferometer
