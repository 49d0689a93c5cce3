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
inline constexpr int kSm90Groups = 2;        // warpgroups that multiply
inline constexpr int kSm90TileA = kSm90GroupRows * kSm90Groups;
inline constexpr int kSm90MostB = 256;    // rows of B in an instruction and in a copy; wider tiles take two
inline constexpr int kSm90MostSplit = 8;  // blocks of a cluster: what every GPU can have

// Where tiles with X as A do not fill the last wave of blocks, those left over are cut into parts of so many rows of B.
inline constexpr int kSm90PartB = 64;

struct Sm90Tile {
  bool weights_are_a;
  int tile_b;         // rows of B
  int stages;         // slices in use or on their way
  int blocks_per_sm;  // that registers and shared memory are held to

  // Two warpgroups that multiply and a warp that copies. A block with an SM to itself has a third whole warpgroup
  // instead, whose registers the others take: 128 sums a thread leave too few of the 168 that each starts with.
  constexpr bool shifts_registers() const { return blocks_per_sm == 1; }
  constexpr int threads() const { return kSm90Groups * kSm90Warpgroup + (shifts_registers() ? kSm90Warpgroup : 32); }

  constexpr int a_bytes() const { return kSm90TileA * kSm90TileBytesK; }
  constexpr int stage_bytes() const { return (kSm90TileA + tile_b) * kSm90TileBytesK; }

  // With W as A the blocks of a cluster may share out the k of a tile; with X as A tiles may be cut into parts.
  constexpr bool can_split() const { return weights_are_a; }
  constexpr int parts() const { return weights_are_a ? 1 : tile_b / kSm90PartB; }
  constexpr int part_b() const { return tile_b / parts(); }
  constexpr int copied_b() const { return tile_b <= kSm90MostB ? tile_b : tile_b / 2; }  // rows of B in a copy

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
  constexpr int barriers_at() const { return boxes_at() + kSm90Groups * boxes() * box_bytes(); }
  constexpr std::size_t smem_bytes() const {
    return static_cast<std::size_t>(barriers_at()) + (2 * static_cast<std::size_t>(stages) + 1) * 8;
  }

  // The ends of product_ends.hpp: tiles for few tokens have them, and behind their barriers room for a factor of each.
  constexpr bool has_late_norm() const { return weights_are_a && tile_b <= 32; }
  constexpr std::size_t factors_at() const {
    return smem_bytes() + 8;
  }  // 16-byte aligned with an odd number of barriers
  constexpr std::size_t gated_smem_bytes() const {
    return has_late_norm() ? factors_at() + 4 * static_cast<std::size_t>(tile_b) : smem_bytes();
  }
};

}  // namespace inferometer
