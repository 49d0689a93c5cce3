// From a warpgroup's sums to Y: rounded pairs go to a box in shared memory, from there to memory by the copy engine,
// while the warpgroup multiplies the next tile.
#pragma once

#include <cstdint>

#include "kernels/matmul/sm90_args.hpp"
#include "kernels/matmul/sm90_tile.hpp"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/stmatrix.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// One warpgroup's boxes. A box is rows of 64 elements of Y, stored with the 128-byte swizzle; of a gated product
// (product_ends.hpp) 32, with the 64-byte swizzle, for 64 rows of W.
template <class Tile, bool kGated = false>
class BoxStore {
  static constexpr Sm90Tile kTile = Tile::kTile;
  static constexpr std::uint32_t kRowBytes = kGated ? 64 : 128;
  static constexpr std::uint32_t kGroupBytes = 8 * kRowBytes;

 public:
  // `boxes`: the shared address of the warpgroup's boxes; `group`: its number in the block.
  __device__ BoxStore(const Sm90Args& args, std::uint32_t boxes, std::uint32_t group)
      : args_(args), box_(boxes), first_box_(boxes), group_(group) {
    const std::uint32_t warp = threadIdx.x / 32 % 4;
    const std::uint32_t lane = threadIdx.x % 16;  // lanes 16 to 31 give no addresses to stmatrix_x2
    row_key_ = kGated ? lane % 8 / 2 : lane % 8;
    if constexpr (kGated && kTile.weights_are_a) {
      lane_offset_ = lane % 8 * kRowBytes + (warp ^ row_key_) * 16;  // a warp's 16 rows of W are one tile of stmatrix
    } else if constexpr (kTile.weights_are_a) {
      // The sums' columns are rows of Y: tile i of stmatrix is 8 columns wide, at 16 warp + 8 i.
      lane_offset_ = row_key_ * 128 + ((2 * warp + lane / 8) ^ row_key_) * 16;
    } else {
      lane_offset_ = (16 * warp + lane) * kRowBytes;
    }
  }

  // How many groups of 8 columns of sums all boxes hold.
  static constexpr std::uint32_t kMostGroups = kTile.boxes() * kTile.box_groups();

  // All threads: the box that is next may be written again.
  __device__ void begin() const {
    if constexpr (kTile.direct_stores) {
      __syncwarp();  // a warp has its rows of a box to itself
    } else {
      if (is_leader()) tma_store_wait_read<kTile.boxes() - 1>();
      sync();
    }
  }

  // Puts 8 columns of sums, rounded and packed in pairs, into the box as their `at`-th, or past its end into the
  // one after (W as A): `upper` of the rows of lane / 4, `lower` of those 8 below.
  __device__ void put(std::uint32_t at, std::uint32_t upper, std::uint32_t lower) const {
    if constexpr (kTile.weights_are_a) {
      stmatrix_x2_trans(box_ + lane_offset_ + at * kGroupBytes, upper, lower);
    } else {
      stmatrix_x2(box_ + lane_offset_ + (at ^ row_key_) * 16, upper, lower);
    }
  }

  // The same for 8 columns of a gated product with W as A, where the rows of lane / 4 and those 8 below make one
  // feature.
  __device__ void put_gated(std::uint32_t at, std::uint32_t pair) const {
    stmatrix_x1_trans(box_ + lane_offset_ + at * kGroupBytes, pair);
  }

  // All threads: sends off the box and turns to the next. `tile`: what the block computes; `first_group`: the box's
  // first 8 columns of sums; `groups_left` from there on, at least box_groups() but with direct_stores.
  __device__ void send(Sm90Origin tile, std::uint32_t first_group, std::uint32_t groups_left) {
    if constexpr (kTile.direct_stores) {
      __syncwarp();
      store_rows(tile.a + group_ * kSm90GroupRows, tile.b + first_group * 8, groups_left);
    } else {
      flush();
      send_groups<kTile.box_groups()>(tile, first_group, 0);
      if (is_leader()) tma_store_commit();
    }
    if constexpr (kTile.boxes() == 2) box_ ^= first_box_ ^ (first_box_ + kTile.box_bytes());
  }

  // All threads: the same for `groups` groups, up to kMostGroups, of a tile that blocks share; waits until all boxes
  // may be written again.
  __device__ void send_shared(Sm90Origin tile, std::uint32_t first_group, std::uint32_t groups) const {
    flush();
    for (std::uint32_t at = 0; at < groups; ++at) send_groups<1>(tile, first_group + at, at);
    if (is_leader()) tma_store_commit();
    finish();
  }

  // Before the block ends: shared memory must outlive the copies from it.
  __device__ void finish() const {
    if (!kTile.direct_stores && is_leader()) tma_store_wait_read<0>();
  }

 private:
  // A warp's 16 rows of the box, of up to `groups` groups: lanes side by side store its row.
  __device__ void store_rows(std::uint32_t row, std::uint32_t column, std::uint32_t groups) const {
    constexpr std::uint32_t kLanes = kRowBytes / 16;
    constexpr std::uint32_t kRowsAtOnce = 32 / kLanes;
    constexpr std::uint32_t kNarrower = kGated ? 2 : 1;  // than W's rows
    const std::uint32_t first = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / kLanes;
    const std::uint32_t group = threadIdx.x % kLanes;
    const std::int64_t columns = args_.n / kNarrower;
    const std::int64_t feature = column / kNarrower + group * 8;
    auto* const y = static_cast<std::uint16_t*>(args_.y_data) + feature;
#pragma unroll
    for (std::uint32_t i = 0; i < 16; i += kRowsAtOnce) {
      const std::uint32_t r = first + i;
      const std::uint32_t key = kGated ? r % 8 / 2 : r % 8;
      const float4 values = load_shared_four_floats(box_ + r * kRowBytes + (group ^ key) * 16);
      const std::int64_t token = row + r;
      if (token < args_.m && feature < columns && group < groups / kNarrower)
        *reinterpret_cast<float4*>(y + token * columns) = values;
    }
  }

  __device__ bool is_leader() const { return threadIdx.x % kSm90Warpgroup == 0; }
  __device__ void sync() const { named_barrier_sync(1 + static_cast<int>(group_), kSm90Warpgroup); }

  // What all threads put is there, for the copy engine too.
  __device__ void flush() const {
    if (args_.y_aligned) fence_async_shared();
    sync();
  }

  // Sends kGroups groups, from the `at`-th that was put.
  template <int kGroups>
  __device__ void send_groups(Sm90Origin tile, std::uint32_t first_group, std::uint32_t at) const {
    const std::uint32_t a = tile.a + group_ * kSm90GroupRows;
    const std::uint32_t b = tile.b + first_group * 8;
    const std::uint32_t row = kTile.weights_are_a ? b : a;
    const std::uint32_t column = (kTile.weights_are_a ? a : b) / (kGated ? 2 : 1);
    const std::uint32_t box = box_ + at * kGroupBytes;
    if (!kGated && !args_.y_aligned) {
      store_elements(box, row, column, kTile.weights_are_a ? kGroups * 8 : kSm90GroupRows);
    } else if (is_leader()) {
      tma_store_2d(&args_.y, box, static_cast<int>(column), static_cast<int>(row));
    }
  }

  // Where rows of Y do not start on 16-byte boundaries, which the copy engine asks for.
  __device__ void store_elements(std::uint32_t box, std::int64_t row, std::int64_t column, std::uint32_t rows) const {
    auto* const y = static_cast<std::uint16_t*>(args_.y_data);
    for (std::uint32_t e = threadIdx.x % kSm90Warpgroup; e < rows * 64; e += kSm90Warpgroup) {
      const std::uint32_t r = e / 64;
      const std::uint32_t c = e % 64;
      if (row + r < args_.m && column + c < args_.n)
        y[(row + r) * args_.n + column + c] = load_shared_2b(box + r * 128 + (c / 8 ^ r % 8) * 16 + c % 8 * 2);
    }
  }

  const Sm90Args& args_;
  std::uint32_t box_;  // the next one
  std::uint32_t first_box_;
  std::uint32_t group_;
  std::uint32_t row_key_;
  std::uint32_t lane_offset_;
};

#endif

}  // namespace inferometer
