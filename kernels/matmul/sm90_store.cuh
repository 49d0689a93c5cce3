// From a warpgroup's sums to Y: rounded pairs go to a box in shared memory, from there to memory by the copy engine,
// while the warpgroup multiplies the next tile.
#pragma once

#include <cstdint>

#include "kernels/matmul/sm90_args.hpp"
#include "kernels/matmul/sm90_tile.hpp"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/movmatrix.cuh"
#include "kernels/ptx/stmatrix.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// One warpgroup's boxes. A box is rows of 64 elements of Y, stored with the 128-byte swizzle.
template <class Tile>
class BoxStore {
  static constexpr Sm90Tile kTile = Tile::kTile;

 public:
  // `boxes`: the shared address of the warpgroup's boxes; `group`: its number in the block.
  __device__ BoxStore(const Sm90Args& args, std::uint32_t boxes, std::uint32_t group)
      : args_(args), box_(boxes), first_box_(boxes), group_(group) {
    const std::uint32_t warp = threadIdx.x / 32 % 4;
    const std::uint32_t lane = threadIdx.x % 16;  // lanes 16 to 31 give no addresses to stmatrix_x2
    row_key_ = lane % 8;
    if constexpr (kTile.weights_are_a) {
      // The sums' columns are rows of Y: tile i of stmatrix is 8 columns wide, at 16 warp + 8 i.
      lane_offset_ = row_key_ * 128 + ((2 * warp + lane / 8) ^ row_key_) * 16;
    } else {
      lane_offset_ = (16 * warp + lane) * 128;
    }
  }

  // How many groups of 8 columns of sums all boxes hold.
  static constexpr std::uint32_t kMostGroups = kTile.boxes() > 0 ? kTile.boxes() * kTile.box_groups() : 64;

  // All threads: the box that is next may be written again.
  __device__ void begin() const {
    if constexpr (kTile.direct) {
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
      stmatrix_x2_trans(box_ + lane_offset_ + at * 1024, upper, lower);
    } else {
      stmatrix_x2(box_ + lane_offset_ + (at ^ row_key_) * 16, upper, lower);
    }
  }

  // All threads: sends off the box and turns to the next. `tile`: what the block computes; `first_group`: the box's
  // first 8 columns of sums; `groups_left` is at least box_groups() but for direct stores.
  __device__ void send(Sm90Origin tile, std::uint32_t first_group, std::uint32_t groups_left) {
    if constexpr (kTile.direct) {
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
    if (!kTile.direct && is_leader()) tma_store_wait_read<0>();
  }

  // Straight to Y: 8 columns of sums of a tile, rounded and packed as for put(). n is even.
  __device__ void store_group(Sm90Origin tile, std::uint32_t group, std::uint32_t upper, std::uint32_t lower) const {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t a = tile.a + group_ * kSm90GroupRows + threadIdx.x / 32 % 4 * 16;
    const std::uint32_t b = tile.b + group * 8;
    auto* const y = static_cast<std::uint16_t*>(args_.y_data);
    if constexpr (kTile.weights_are_a) {
      // [8 features, 8 tokens] to [8 tokens, 8 features]
      upper = movmatrix_trans(upper);
      lower = movmatrix_trans(lower);
      const std::int64_t token = b + lane / 4;
      const std::int64_t feature = a + lane % 4 * 2;
      if (token >= args_.m) return;
      store_pair(y + token * args_.n + feature, upper, feature < args_.n);
      store_pair(y + token * args_.n + feature + 8, lower, feature + 8 < args_.n);
    } else {
      const std::int64_t token = a + lane / 4;
      const std::int64_t feature = b + lane % 4 * 2;
      if (feature >= args_.n) return;
      store_pair(y + token * args_.n + feature, upper, token < args_.m);
      store_pair(y + (token + 8) * args_.n + feature, lower, token + 8 < args_.m);
    }
  }

 private:
  __device__ static void store_pair(std::uint16_t* y, std::uint32_t pair, bool valid) {
    if (valid) *reinterpret_cast<std::uint32_t*>(y) = pair;
  }

  // A warp's 16 rows of the box, X as A: 8 lanes store a line of 128 bytes.
  __device__ void store_rows(std::uint32_t row, std::uint32_t column, std::uint32_t chunks) const {
    const std::uint32_t warp_row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 8;
    const std::uint32_t chunk = threadIdx.x % 8;
    const std::int64_t feature = column + chunk * 8;
    auto* const y = static_cast<std::uint16_t*>(args_.y_data) + feature;
#pragma unroll
    for (std::uint32_t r = 0; r < 16; r += 4) {
      const std::uint32_t at = warp_row + r;
      const float4 values = load_shared_16b(box_ + at * 128 + ((chunk ^ at % 8) * 16));
      const std::int64_t token = row + at;
      if (token < args_.m && feature < args_.n && chunk < chunks)
        *reinterpret_cast<float4*>(y + token * args_.n) = values;
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
    const std::uint32_t column = kTile.weights_are_a ? a : b;
    const std::uint32_t box = box_ + at * 1024;
    if (!args_.y_aligned) {
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
