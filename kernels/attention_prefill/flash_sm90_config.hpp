// attention_prefill / flash_sm90: tiles and registers for each width of heads.
#pragma once

namespace inferometer {

// A thread block computes kTileQ queries of one head: kWarpgroups warpgroups of 64 rows, and one more that starts the
// copies. Keys and values come kTileKv at a time through two stages each.
//
//   shared memory, 227 KB at most:  Q  kQStages x kTileQ x head_dim,  K and V  2 x kTileKv x (head_dim + v_dim),
//                                   16 bits each, head_dim and v_dim rounded up to 64
//   registers, 64 K of an SM:       a math thread holds S (kTileKv / 2), P (kTileKv / 4) and O (v_dim / 2)
template <int kHeadDim_, int kVDim_, int kWarpgroups_, int kTileKv_, int kQStages_>
struct FlashSm90Shape {
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kVDim = kVDim_;
  static constexpr int kWarpgroups = kWarpgroups_;
  static constexpr int kTileKv = kTileKv_;
  static constexpr int kTileQ = 64 * kWarpgroups_;
  static constexpr int kThreads = 128 * (kWarpgroups_ + 1);
  // Tiles: the one that math warpgroups work on, the one they leave and the one whose queries are on their way.
  static constexpr int kWorkStages = 3;
  static constexpr int kStages = 2;           // of K and V
  static constexpr int kQStages = kQStages_;  // 2: the next tile's queries arrive while this one's are in use
  // In which a thread takes maxima and sums, half of them a row: with few warps on an SM, the latency of one would
  // show.
  static constexpr int kChains = kWarpgroups_ == 2 ? 8 : 4;
  // setmaxnreg: 384 threads start with 168 registers, 512 with 128; what the copying warpgroup gives up, the others
  // get.
  static constexpr int kCopyRegisters = kWarpgroups_ == 2 ? 24 : 32;
  static constexpr int kMathRegisters = kWarpgroups_ == 2 ? 240 : 160;

  static constexpr int kQkPanels = (kHeadDim + 63) / 64;
  static constexpr int kVPanels = (kVDim + 63) / 64;
  static constexpr int kQBytes = 64 * 128 * kQkPanels;  // of one warpgroup
  static constexpr int kKBytes = kTileKv * 128 * kQkPanels;
  static constexpr int kVBytes = kTileKv * 128 * kVPanels;
  static_assert(kTileKv % 16 == 0 && kHeadDim % 16 == 0 && kVDim % 32 == 0);
};

// Three warpgroups where their registers suffice: with more warps on an SM, more of the latency of the exponentials is
// hidden (head_dim 64, 4 x 4096 tokens: 393 TFLOP/s with two, 482 with three).
using FlashSm90D64 = FlashSm90Shape<64, 64, 3, 128, 2>;
using FlashSm90D96 = FlashSm90Shape<96, 96, 3, 96, 2>;
// With a soft cap, tanhf takes the registers that a third warpgroup would need.
using FlashSm90D64Capped = FlashSm90Shape<64, 64, 2, 128, 2>;
using FlashSm90D96Capped = FlashSm90Shape<96, 96, 2, 128, 2>;
// head_dim 128: three warpgroups leave registers for blocks of 80 keys only. What a block costs beside its products
// weighs more in short blocks; what a tile costs, more in short sequences. TFLOP/s at 512 / 1k / 2k / 8k keys, full:
// 481 / 570 / 638 / 622 with two warpgroups and 128 keys, 447 / 557 / 648 / 636 with three and 80. Pages are copied in
// pieces that divide both them and a block of keys: 128 is the better length there.
using FlashSm90D128 = FlashSm90Shape<128, 128, 3, 80, 1>;
using FlashSm90D128Short = FlashSm90Shape<128, 128, 2, 128, 2>;
using FlashSm90D192 = FlashSm90Shape<192, 192, 2, 112, 1>;
using FlashSm90D192V128 = FlashSm90Shape<192, 128, 2, 128, 1>;
using FlashSm90D256 = FlashSm90Shape<256, 256, 2, 80, 1>;

}  // namespace inferometer
