// attention_prefill / flash_sm90: what a thread block keeps in shared memory, and the barriers by which its warps hand
// it to each other. Every barrier is named for what its waiters wait for.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm90_work.hpp"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared_address.cuh"

namespace inferometer {

template <class Shape>
struct FlashSm90Shared {
  alignas(1024) unsigned char q[Shape::kWarpgroups][Shape::kQStages][Shape::kQBytes];
  alignas(1024) unsigned char k[Shape::kKStages][Shape::kKBytes];
  alignas(1024) unsigned char v[Shape::kVStages][Shape::kVBytes];
  PrefillWork work[Shape::kWorkStages];
  WarpgroupWork warpgroup_work[Shape::kWorkStages][Shape::kWarpgroups];
  float factors[Shape::kWarpgroups][64];  // of rows of O that are to be multiplied
  std::uint64_t work_ready[Shape::kWorkStages];
  std::uint64_t work_read[Shape::kWorkStages];
  std::uint64_t q_ready[Shape::kWarpgroups][Shape::kQStages];
  std::uint64_t q_read[Shape::kWarpgroups][Shape::kQStages];
  std::uint64_t k_ready[Shape::kKStages];
  std::uint64_t k_read[Shape::kKStages];
  std::uint64_t v_ready[Shape::kVStages];
  std::uint64_t v_read[Shape::kVStages];
  std::uint64_t tile_wanted;  // by the warp that copies Q and K
  std::uint64_t tail_landed;  // of V: the block with a sequence's last keys, before its other rows are cleared

  // By one thread. "Ready" is one arrival and the bytes announced with it, "read" one arrival of each warp that reads:
  // the math warps. A tile's work, which the warp that copies values reads too, has an arrival of each lane that writes
  // or reads it: compute-sanitizer's racecheck does not see an order that goes through another lane's arrival.
  __device__ void init_barriers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr std::uint32_t kWarps = Shape::kWarpgroups * 4;
    for (int i = 0; i < Shape::kWorkStages; ++i) {
      mbarrier_init(shared_address(&work_ready[i]), Shape::kWarpgroups);
      mbarrier_init(shared_address(&work_read[i]), 32 * (kWarps + 1));
    }
    for (int w = 0; w < Shape::kWarpgroups; ++w)
      for (int i = 0; i < Shape::kQStages; ++i) {
        mbarrier_init(shared_address(&q_ready[w][i]), 1);
        mbarrier_init(shared_address(&q_read[w][i]), 4);
      }
    for (int i = 0; i < Shape::kKStages; ++i) {
      mbarrier_init(shared_address(&k_ready[i]), 1);
      mbarrier_init(shared_address(&k_read[i]), kWarps);
    }
    for (int i = 0; i < Shape::kVStages; ++i) {
      mbarrier_init(shared_address(&v_ready[i]), 1);
      mbarrier_init(shared_address(&v_read[i]), kWarps);
    }
    mbarrier_init(shared_address(&tile_wanted), 32);
    mbarrier_init(shared_address(&tail_landed), 1);
    mbarrier_init_fence();
#endif
  }
};

}  // namespace inferometer
