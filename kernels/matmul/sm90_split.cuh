// A tile whose k the blocks of a cluster share out: each block sends every other its part of the sums, 8 columns at a
// time, from registers to shared memory, and adds up the parts of the columns that are its own in the order of the
// blocks, so that the result is the same bit for bit.
#pragma once

#include <cstdint>

#include "kernels/matmul/sm90_args.hpp"
#include "kernels/matmul/sm90_tile.hpp"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/st_shared.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <class Tile>
class PartialSums {
  static constexpr std::uint32_t kGroups = Tile::kTile.sum_groups();
  static constexpr std::uint32_t kThreads = Tile::kTile.groups * kSm90Warpgroup;

 public:
  // `memory`: the shared address of the stages, whose place the parts take once all blocks have read theirs: 16 bytes
  // for every thread, own group and block. `barrier`: of this block, for this one exchange.
  __device__ PartialSums(const Sm90Args& args, std::uint32_t memory, std::uint32_t barrier, std::uint32_t rank)
      : memory_(memory), barrier_(barrier), rank_(rank), split_(args.work.split), own_(args.own_groups) {}

  // One thread, before the first barrier of the block.
  __device__ void initialize() const {
    mbarrier_init(barrier_, 1);
    mbarrier_arrive_expect_bytes(
        barrier_, first_group() < end_group() ? (split_ - 1) * (end_group() - first_group()) * kThreads * 16 : 0);
  }

  // All threads of all blocks that multiply.
  template <class Sum>
  __device__ __forceinline__ void exchange(const Sum (&sums)[4 * kGroups]) const {
    static_assert(sizeof(Sum) == sizeof(float));
    cluster_arrive_relaxed();
    cluster_wait();  // every block has multiplied what was in its stages
    std::uint32_t owner = 0;
    std::uint32_t local = 0;
#pragma unroll
    for (std::uint32_t group = 0; group < kGroups; ++group) {
      const auto* const s = reinterpret_cast<const float*>(&sums[4 * group]);
      const float4 part = make_float4(s[0], s[1], s[2], s[3]);
      if (owner == rank_) {  // read by this thread only
        store_shared_16b(place(rank_, local), part);
      } else {
        store_cluster_async_16b(cluster_address(place(rank_, local), owner), part, cluster_address(barrier_, owner));
      }
      if (++local == own_) {
        local = 0;
        ++owner;
      }
    }
    mbarrier_wait(barrier_, 0);
  }

  __device__ std::uint32_t first_group() const { return rank_ * own_; }
  __device__ std::uint32_t end_group() const { return min(first_group() + own_, kGroups); }
  __device__ std::uint32_t own_groups() const { return max(end_group(), first_group()) - first_group(); }

  // The sums over all blocks of `count` groups from `first`: what a thread's sums[4 first] .. are without a split.
  template <class Sum, std::uint32_t kMost>
  __device__ __forceinline__ void total(std::uint32_t first, std::uint32_t count, Sum (&sums)[kMost][4]) const {
#pragma unroll
    for (std::uint32_t group = 0; group < kMost; ++group)
#pragma unroll
      for (Sum& s : sums[group]) s = 0;
    for (std::uint32_t block = 0; block < split_; ++block) {
#pragma unroll
      for (std::uint32_t group = 0; group < kMost; ++group) {
        if (group >= count) break;
        const float4 part = load_shared_four_floats(place(block, first - first_group() + group));
        const auto* const p = reinterpret_cast<const Sum*>(&part);
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[group][i] += p[i];
      }
    }
  }

 private:
  __device__ std::uint32_t place(std::uint32_t block, std::uint32_t local) const {
    return memory_ + ((block * own_ + local) * kThreads + threadIdx.x) * 16;
  }

  std::uint32_t memory_;
  std::uint32_t barrier_;
  std::uint32_t rank_;
  std::uint32_t split_;
  std::uint32_t own_;
};

#endif

}  // namespace inferometer
