// The two sides of the main loop of sm90_matmul_kernel: one thread has the copy engine fill stages, two warpgroups
// multiply what is in them: sums [64, N] += A[64, slices] B[N, slices]^T each. N is the tile's rows of B, or a part's.
//
// After: the warp-specialised, persistent kernels of CUTLASS 3 (Thakkar et al., github.com/NVIDIA/cutlass).
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/wgmma_matrix.cuh"
#include "kernels/matmul/sm90_args.hpp"
#include "kernels/matmul/sm90_ring.cuh"
#include "kernels/matmul/sm90_tile.hpp"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma.cuh"
#include "kernels/ptx/wgmma_m_major.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// What differs between element types of A and B. T is __half or __nv_bfloat16; a specialisation adds another.
template <class T>
struct Sm90Element {
  using Sum = float;
  template <int N>
  __device__ static void multiply(Sum (&sums)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate) {
    Wgmma<T, N>::template run<BLayout::k_major>(sums, a, b, accumulate);
  }
};

template <class T, int N>
using Sm90Sums = typename Sm90Element<T>::Sum[N / 2];

// One instruction, of operands as the tile's stages hold them.
template <class T, class Tile, int N>
__device__ __forceinline__ void multiply_stage(Sm90Sums<T, N>& sums, std::uint64_t a, std::uint64_t b,
                                               bool accumulate) {
  if constexpr (Tile::kTile.a_is_kn()) {
    WgmmaMMajor<T, N>::run(sums, a, b, accumulate);
  } else if constexpr (Tile::kTile.b_is_kn()) {
    Wgmma<T, N>::template run<BLayout::n_major>(sums, a, b, accumulate);
  } else {
    Sm90Element<T>::template multiply<N>(sums, a, b, accumulate);
  }
}

// One step of k. An instruction takes up to 256 rows of B: more are two, the first of whole panels where there are
// such.
template <class T, class Tile, int N>
__device__ __forceinline__ void multiply_step(Sm90Sums<T, N>& sums, std::uint64_t a, std::uint64_t b, bool accumulate) {
  if constexpr (N <= kSm90MostB) {
    multiply_stage<T, Tile, N>(sums, a, b, accumulate);
  } else {
    constexpr int kUnit = Tile::kTile.b_is_kn() ? kSm90PanelRows : 1;
    constexpr int kFirst = (N / 2 + kUnit - 1) / kUnit * kUnit;
    multiply_stage<T, Tile, kFirst>(reinterpret_cast<Sm90Sums<T, kFirst>&>(sums[0]), a, b, accumulate);
    multiply_stage<T, Tile, N - kFirst>(reinterpret_cast<Sm90Sums<T, N - kFirst>&>(sums[kFirst / 2]), a,
                                        advance_descriptor(b, kFirst * kSm90TileBytesK), accumulate);
  }
}

// A matrix in a stage, rows or panels of it, and how far apart its steps of k are, in units of a descriptor's address.
template <bool kIsKn>
__device__ __forceinline__ std::uint64_t stage_descriptor(std::uint32_t address) {
  if constexpr (kIsKn) return n_major_descriptor(address, kSm90PanelBytes);
  return k_major_descriptor(address);
}
inline constexpr int kSm90StepBytes = 32;  // of k in one wgmma, for every element type
template <bool kIsKn>
inline constexpr int kSm90StepUnits = (kIsKn ? kSm90StepBytes / 2 * kSm90TileBytesK : kSm90StepBytes) / 16;

// The part of a tile's rows of A or B that is not past their end: what is in the place of the others makes sums that
// are not stored.
class RowCopies {
 public:
  __device__ RowCopies(const Sm90Rows& from, std::uint32_t first, std::uint32_t most) : from_(from), first_(first) {
    const std::uint32_t rows = first < from.rows ? min(most, from.rows - first) : 0;
    whole_rows_ = rows / from.box * from.box;
    has_rest_ = whole_rows_ < rows;
  }

  __device__ std::uint32_t bytes() const { return (whole_rows_ + (has_rest_ ? from_.rest : 0)) * kSm90TileBytesK; }

  __device__ void start(std::uint32_t stage, std::uint32_t full_barrier, int k) const {
    for (std::uint32_t row = 0; row < whole_rows_; row += from_.box)
      tma_load_2d(stage + row * kSm90TileBytesK, &from_.whole_map, full_barrier, k, static_cast<int>(first_ + row));
    if (has_rest_)
      tma_load_2d(stage + whole_rows_ * kSm90TileBytesK, &from_.rest_map, full_barrier, k,
                  static_cast<int>(first_ + whole_rows_));
  }

 private:
  const Sm90Rows& from_;
  std::uint32_t first_;
  std::uint32_t whole_rows_;
  bool has_rest_;
};

// The same of a W stored [k, n], in panels: rows past its end in the last one arrive as zeros.
class PanelCopies {
 public:
  __device__ PanelCopies(const Sm90Rows& from, std::uint32_t first, std::uint32_t most) : from_(from), first_(first) {
    const std::uint32_t rows = first < from.rows ? min(most, from.rows - first) : 0;
    panels_ = (rows + kSm90PanelRows - 1) / kSm90PanelRows;
  }

  __device__ std::uint32_t bytes() const { return panels_ * kSm90PanelBytes; }

  __device__ void start(std::uint32_t stage, std::uint32_t full_barrier, int k) const {
    for (std::uint32_t panel = 0; panel < panels_; ++panel)
      tma_load_2d(stage + panel * kSm90PanelBytes, &from_.whole_map, full_barrier, row_of(panel), k);
  }

  // Of a pair of blocks: this block's half of k, for both.
  __device__ void start_half(std::uint32_t stage, std::uint32_t full_barrier, int k, std::uint32_t rank) const {
    for (std::uint32_t panel = 0; panel < panels_; ++panel)
      tma_load_2d_multicast(stage + panel * kSm90PanelBytes + rank * (kSm90PanelBytes / 2), &from_.whole_map,
                            full_barrier, 3, row_of(panel), k + static_cast<int>(rank) * (kSm90SliceK / 2));
  }

 private:
  __device__ int row_of(std::uint32_t panel) const { return static_cast<int>(first_ + panel * kSm90PanelRows); }

  const Sm90Rows& from_;
  std::uint32_t first_;
  std::uint32_t panels_;
};

template <bool kIsKn>
using Sm90Copies = std::conditional_t<kIsKn, PanelCopies, RowCopies>;

// One thread: starts the copies of all of this block's slices of a tile, the last slice first if `backwards`.
template <class T, class Tile, int kRowsEach, int N>
__device__ __forceinline__ void copy_slices(const Sm90Args& args, Sm90Origin tile, std::uint32_t rank,
                                            std::uint32_t stages, StageRing<Tile::kTile.stages>& ring, bool backwards) {
  constexpr Sm90Tile kTile = Tile::kTile;
  constexpr std::uint32_t kSliceElems = kSm90TileBytesK / sizeof(T);
  const Sm90Copies<kTile.a_is_kn()> a(args.a, tile.a, kRowsEach * kTile.part_a());
  const Sm90Copies<kTile.b_is_kn()> b(args.b, tile.b, N);
  const std::uint32_t first = kTile.pairs ? 0 : args.work.first_slice(rank);
  const std::uint32_t count = args.work.slices_of(rank);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t stage = stages + ring.stage() * kTile.stage_bytes();
    const int k = static_cast<int>((first + (backwards ? count - 1 - i : i)) * kSliceElems);
    ring.begin_fill(a.bytes() + b.bytes());
    a.start(stage, ring.full(), k);
    if constexpr (kTile.pairs && kTile.w_is_kn) {
      b.start_half(stage + kTile.a_bytes(), ring.full(), k, rank);
    } else if constexpr (kTile.pairs) {
      const std::uint32_t row = rank * (N / 2);
      tma_load_2d_multicast(stage + kTile.a_bytes() + row * kSm90TileBytesK, &args.b.whole_map, ring.full(), 3, k,
                            static_cast<int>(tile.b + row));
    } else {
      b.start(stage + kTile.a_bytes(), ring.full(), k);
    }
    ring.advance();
  }
}

// All threads of a warpgroup. `slices` is at least 1; `a_row` is the warpgroup's first row of A in a stage, of
// kRowsEach times 64.
template <class T, class Tile, int kRowsEach, int N>
__device__ __forceinline__ void multiply_slices(std::uint32_t slices, std::uint32_t stages, std::uint32_t a_row,
                                                StageRing<Tile::kTile.stages>& ring,
                                                Sm90Sums<T, N> (&sums)[kRowsEach]) {
  constexpr Sm90Tile kTile = Tile::kTile;
  constexpr int kSteps = kSm90TileBytesK / kSm90StepBytes;
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    const std::uint32_t stage = stages + ring.stage() * kTile.stage_bytes();
    const std::uint64_t b = stage_descriptor<kTile.b_is_kn()>(stage + kTile.a_bytes());
    ring.wait_full();
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < kRowsEach; ++i) {
        const std::uint64_t a =
            stage_descriptor<kTile.a_is_kn()>(stage + (a_row + i * kSm90GroupRows) * kSm90TileBytesK);
        multiply_step<T, Tile, N>(sums[i], a + step * kSm90StepUnits<kTile.a_is_kn()>,
                                  b + step * kSm90StepUnits<kTile.b_is_kn()>, slice > 0 || step > 0);
      }
    }
    wgmma_commit();
    // The tensor cores go on with this slice while the stage of the one before, now read, is released.
    wgmma_wait<1>();
    if constexpr (kTile.pairs) {
      // To both blocks, if the stage is filled again: nobody arrives at a block that has ended.
      if (slice > 0 && slice - 1 + kTile.stages < slices && threadIdx.x % 32 < 2)
        ring.release_previous(threadIdx.x % 32);
    } else {
      if (slice > 0 && threadIdx.x % 32 == 0) ring.release_previous();
    }
    ring.advance();
  }
  wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < kRowsEach; ++i) pin_registers(sums[i]);
  if (!kTile.pairs && threadIdx.x % 32 == 0) ring.release_previous();
}

#endif

}  // namespace inferometer
