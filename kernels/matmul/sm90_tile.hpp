// How a block cuts a product for wgmma: the compile-time parameters of sm90_matmul_kernel.
//
// wgmma multiplies 64 rows of one operand, A, with 8 to 256 rows of the other, B. Either A is X and B is W, or, for few
// tokens, A is W and B is X: then only multiples of 8 tokens are paid for, and the tile is Y's transpose.
#pragma once

#include <cstddef>

namespace inferometer {

inline constexpr int kSm90TileBytesK = 128;  // of each row in a stage: one swizzled panel (common/wgmma_matrix.cuh)
inline constexpr int kSm90Warpgroup = 128;   // threads
inline constexpr int kSm90GroupRows = 64;    // rows of A that a warpgroup multiplies
inline constexpr int kSm90SliceK = 64;       // elements of 16 bits in kSm90TileBytesK
inline constexpr int kSm90PanelRows = 64;    // rows of a W stored [k, n] in a panel (w_is_kn)
inline constexpr int kSm90PanelBytes = kSm90SliceK * kSm90PanelRows * 2;
inline constexpr int kSm90MostB = 256;    // rows of B in an instruction and in a copy; wider tiles take two
inline constexpr int kSm90MostSplit = 8;  // blocks of a cluster: what every GPU can have

// Where tiles with X as A do not fill the last wave of blocks, those left over are cut into parts of so many rows of B,
// or, where a warpgroup has two times 64 rows of A, into halves with one of them.
inline constexpr int kSm90PartB = 64;

inline constexpr int kSm90LateNormTokens = 32;  // at most, of tiles that have_late_norm()

struct Sm90Tile {
  bool weights_are_a;
  int tile_b;         // rows of B
  int stages;         // slices in use or on their way
  int blocks_per_sm;  // that registers and shared memory are held to
  int groups = 2;     // warpgroups that multiply
  int rows_each = 1;  // times 64 rows of A that each multiplies
  // X as A: each warp stores its rows of Y in lines of 128 bytes, not the copy engine. For any tile_b, but never cut
  // into parts, and only where rows of Y start on 16-byte boundaries.
  bool direct_stores = false;
  // Two blocks with neighbouring rows of A and the same rows of B are a cluster: each fetches half of B's for both. For
  // one tile a block, all rows of B in it.
  bool pairs = false;

  // W is stored [k, n], of 16-bit elements: a stage holds it in panels [k, 64 rows of W] and wgmma transposes them.
  // They take the bytes of as many rows [64, k].
  bool w_is_kn = false;
  constexpr bool a_is_kn() const { return w_is_kn && weights_are_a; }
  constexpr bool b_is_kn() const { return w_is_kn && !weights_are_a; }
  // Whether a tile's W fills its panels.
  constexpr bool can_be_kn() const { return weights_are_a || tile_b % kSm90PanelRows == 0; }
  // What one copy fetches of k: blocks of a pair fetch half a slice each.
  constexpr int panel_k() const { return pairs ? kSm90SliceK / 2 : kSm90SliceK; }

  // Warpgroups that multiply and a warp that copies. A block with an SM to itself has one more whole warpgroup instead,
  // whose registers the others take: 128 sums a thread leave too few of the 168 that each starts with.
  constexpr bool shifts_registers() const { return blocks_per_sm == 1 && (!direct_stores || tile_b > 128); }
  constexpr int threads() const { return groups * kSm90Warpgroup + (shifts_registers() ? kSm90Warpgroup : 32); }

  // Fewer bytes for each product, but slower until power limits the clock. Products of 16 bits meet that, int8 do not.
  constexpr bool saves_power() const { return rows_each > 1; }

  constexpr int part_a() const { return groups * kSm90GroupRows; }
  constexpr int tile_a() const { return rows_each * part_a(); }
  constexpr int a_bytes() const { return tile_a() * kSm90TileBytesK; }
  constexpr int stage_bytes() const { return (tile_a() + tile_b) * kSm90TileBytesK; }

  // With W as A the blocks of a cluster may share out the k of a tile; with X as A tiles may be cut into parts.
  constexpr bool can_split() const { return weights_are_a; }
  constexpr int parts() const {
    if (rows_each > 1) return rows_each;
    return weights_are_a || direct_stores ? 1 : tile_b / kSm90PartB;
  }
  constexpr int part_b() const { return rows_each > 1 ? tile_b : tile_b / parts(); }
  // Rows of B in a copy.
  constexpr int copied_b() const { return tile_b > kSm90MostB || pairs ? tile_b / 2 : tile_b; }

  // Y leaves in boxes of 64 output features (128 bytes) times some tokens. One warpgroup's box: 64 rows of X times 64
  // rows of W; or, with W as A, all 64 of its rows times up to 32 of X, or times 8 where blocks share out the sums of a
  // tile.
  constexpr int sum_groups() const { return tile_b / 8; }  // of 8 columns of the sums
  constexpr int box_groups() const {
    const int most = weights_are_a ? 4 : 8;
    return sum_groups() < most ? sum_groups() : most;
  }
  constexpr int box_bytes() const { return (weights_are_a ? box_groups() * 8 : kSm90GroupRows) * 128; }
  // As many as there is room for beside the stages.
  constexpr int boxes() const { return sum_groups() > box_groups() ? 2 : 1; }

  // Shared memory: stages, boxes of each warpgroup, barriers: two a stage, and one for the sums of other blocks.
  constexpr int boxes_at() const { return stages * stage_bytes(); }
  constexpr int barriers_at() const { return boxes_at() + groups * boxes() * box_bytes(); }
  constexpr std::size_t smem_bytes() const {
    return static_cast<std::size_t>(barriers_at()) + (2 * static_cast<std::size_t>(stages) + 1) * 8;
  }

  // The ends of product_ends.hpp: tiles for few tokens have them, and behind their barriers room for a factor of each.
  constexpr bool has_late_norm() const { return weights_are_a && tile_b <= kSm90LateNormTokens; }
  constexpr std::size_t factors_at() const {
    return smem_bytes() + 8;
  }  // 16-byte aligned with an odd number of barriers
  constexpr std::size_t gated_smem_bytes() const {
    return has_late_norm() ? factors_at() + 4 * static_cast<std::size_t>(tile_b) : smem_bytes();
  }
};

}  // namespace inferometer
