// attention_prefill / flash_sm90: tiles and registers for each width of heads.
#pragma once

namespace inferometer {

// What a shape may do otherwise than take maxima of every block, with two stages each of K and V.
struct FlashSm90Options {
  // m stays where it is once every row has seen a key: no maxima, but the sums tell whether P left the range of 16
  // bits, and the block is then done again. With a soft cap all blocks take maxima.
  bool trusting = false;
  // Paged caches of whole groups of 8 tokens, heads of whole panels: a box holds a head's panels side by side.
  bool grouped = false;
  // Of warpgroups and copying warps, each with tiles and stages of its own: 1 or 2.
  int teams = 1;
  int k_stages = 2;
  int v_stages = 2;
};

// A team computes kTileQ queries of one head: kWarpgroups warpgroups of 64 rows. One more warpgroup of the thread block
// starts the copies. Keys and values come kTileKv at a time.
//
//   shared memory, 227 KB at most:  Q  kQStages x kTileQ x head_dim,  K  k_stages x kTileKv x head_dim,
//                                   V  v_stages x kTileKv x v_dim,  16 bits each, head_dim and v_dim rounded up to 64
//   registers, 64 K of an SM:       a math thread holds S (kTileKv / 2), P (kTileKv / 4) and O (v_dim / 2)
template <int kHeadDim_, int kVDim_, int kWarpgroups_, int kTileKv_, int kQStages_,
          FlashSm90Options kOptions = FlashSm90Options{}>
struct FlashSm90Shape {
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kVDim = kVDim_;
  static constexpr int kWarpgroups = kWarpgroups_;  // of a team
  static constexpr int kTeams = kOptions.teams;
  static constexpr int kTileKv = kTileKv_;
  static constexpr int kTileQ = 64 * kWarpgroups;
  static constexpr int kThreads = 128 * (kWarpgroups * kTeams + 1);
  static constexpr bool kTrusting = kOptions.trusting;
  static constexpr bool kGrouped = kOptions.grouped;
  // Tiles: the one that math warpgroups work on, the one they leave and the one whose queries are on their way.
  static constexpr int kWorkStages = 3;
  static constexpr int kKStages = kOptions.k_stages;
  static constexpr int kVStages = kOptions.v_stages;
  static constexpr int kQStages = kQStages_;  // 2: the next tile's queries arrive while this one's are in use
  // In which a thread takes maxima and sums, half of them a row: with few warps on an SM, the latency of one would
  // show.
  static constexpr int kChains = kWarpgroups * kTeams == 2 ? 8 : 4;
  // Masks as words of bits, tested by predicates; with more warpgroups, other predicates would be kept in memory for
  // it.
  static constexpr bool kMaskBits = kWarpgroups * kTeams == 2;
  // setmaxnreg: 384 threads start with 168 registers, 512 with 128, 640 with 96; what the copying warpgroup gives up,
  // the others get.
  static constexpr int kCopyRegisters = kWarpgroups * kTeams == 2 ? 24 : 32;
  static constexpr int kMathRegisters = kTeams == 2 ? 112 : kWarpgroups == 2 ? 240 : 160;

  static constexpr int kQkPanels = (kHeadDim + 63) / 64;
  static constexpr int kVPanels = (kVDim + 63) / 64;
  static constexpr int kQBytes = 64 * 128 * kQkPanels;  // of one warpgroup
  static constexpr int kKBytes = kTileKv * 128 * kQkPanels;
  static constexpr int kVBytes = kTileKv * 128 * kVPanels;
  static_assert(kTileKv % 16 == 0 && kHeadDim % 16 == 0 && kVDim % 32 == 0);
  static_assert(kTeams == 1 || (kTeams == 2 && kWarpgroups == 2));  // registers, and warps that copy
  static_assert(!kGrouped || (kHeadDim % 64 == 0 && kVDim % 64 == 0));

  // K and V in shared memory: bytes from one panel of 64 elements to the next, and from 8 rows to the next 8.
  static constexpr int panel_bytes() { return kGrouped ? 1024 : kTileKv * 128; }
  static constexpr int group_bytes(int panels) { return kGrouped ? 1024 * panels : 1024; }
};

// Three warpgroups where their registers suffice: with more warps on an SM, more of the latency of the exponentials is
// hidden (head_dim 64, 4 x 4096 tokens: 393 TFLOP/s with two, 482 with three).
using FlashSm90D64 = FlashSm90Shape<64, 64, 3, 128, 2, FlashSm90Options{.trusting = true}>;
using FlashSm90D96 = FlashSm90Shape<96, 96, 3, 96, 2, FlashSm90Options{.trusting = true}>;
// For few keys, two teams: four warpgroups, and tiles of 128 x 64 that waste less at their ends and on the diagonal.
using FlashSm90D64Teams =
    FlashSm90Shape<64, 64, 2, 64, 2, FlashSm90Options{.trusting = true, .teams = 2, .k_stages = 4, .v_stages = 4}>;
// With a soft cap, tanhf takes the registers that a third warpgroup would need.
using FlashSm90D64Capped = FlashSm90Shape<64, 64, 2, 128, 2>;
using FlashSm90D96Capped = FlashSm90Shape<96, 96, 2, 128, 2>;
// head_dim 128: three warpgroups leave registers for blocks of 80 keys only. What a block costs beside its products
// weighs more in short blocks; what a tile costs, more in short sequences. flash_sm90_choice.hpp has the figures. A
// trusting block keeps K until P V before it is done, so a third stage of K is on its way meanwhile.
using FlashSm90D128Long =
    FlashSm90Shape<128, 128, 3, 80, 2, FlashSm90Options{.trusting = true, .k_stages = 3, .v_stages = 3}>;
using FlashSm90D128Short = FlashSm90Shape<128, 128, 2, 128, 2, FlashSm90Options{.trusting = true, .k_stages = 3}>;
using FlashSm90D128Capped = FlashSm90Shape<128, 128, 2, 128, 2>;
// Paged: boxes divide both a block of the cache and a block of keys, and 128 is the better length there.
using FlashSm90D128Paged =
    FlashSm90Shape<128, 128, 2, 128, 2, FlashSm90Options{.trusting = true, .grouped = true, .k_stages = 3}>;
using FlashSm90D192 = FlashSm90Shape<192, 192, 2, 112, 1, FlashSm90Options{.trusting = true}>;
using FlashSm90D192V128 = FlashSm90Shape<192, 128, 2, 128, 1, FlashSm90Options{.trusting = true}>;
// Against 80 keys and two stages of K, 504 for 466 TFLOP/s at 512 keys full, 324 for 301 causal; the same at 8k.
using FlashSm90D256 = FlashSm90Shape<256, 256, 2, 64, 1, FlashSm90Options{.trusting = true, .k_stages = 3}>;

}  // namespace inferometer
