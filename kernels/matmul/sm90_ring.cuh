// The ring of stages between the warp that copies and the warps that multiply: for each stage one barrier that says it
// is full and one that says it is empty.
#pragma once

#include <cstdint>

#include "kernels/ptx/mbarrier.cuh"

namespace inferometer {

#if __CUDA_ARCH__ >= 900

template <int kStages>
class StageRing {
 public:
  // `barriers`: the shared address of two for each stage, 8-byte aligned.
  __device__ explicit StageRing(std::uint32_t barriers) : barriers_(barriers) {}

  // One thread, before any use; mbarrier_init_fence and a barrier of all who share the ring come next. `readers`: warps
  // that release a stage.
  __device__ void initialize(std::uint32_t readers) const {
#pragma unroll
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(full(stage), 1);
      mbarrier_init(empty(stage), readers);
    }
  }

  __device__ std::uint32_t stage() const { return stage_; }
  __device__ std::uint32_t full() const { return full(stage_); }

  // The side that fills: waits until the stage is free, then announces the bytes that it starts copying.
  __device__ void begin_fill(std::uint32_t bytes) const {
    mbarrier_wait(empty(stage_), parity_ ^ 1U);
    mbarrier_arrive_expect_bytes(full(stage_), bytes);
  }

  // The side that reads.
  __device__ void wait_full() const { mbarrier_wait(full(stage_), parity_); }
  // One lane of each warp: the stage before this one is free.
  __device__ void release_previous() const { mbarrier_arrive(empty(previous())); }
  // The same of that stage in block `rank` of the cluster.
  __device__ void release_previous(std::uint32_t rank) const { mbarrier_arrive_cluster(empty(previous()), rank); }

  __device__ void advance() {
    ++stage_;
    if (stage_ == kStages) {
      stage_ = 0;
      parity_ ^= 1U;
    }
  }

 private:
  __device__ std::uint32_t previous() const { return stage_ == 0 ? kStages - 1 : stage_ - 1; }
  __device__ std::uint32_t full(std::uint32_t stage) const { return barriers_ + 8 * stage; }
  __device__ std::uint32_t empty(std::uint32_t stage) const { return barriers_ + 8 * (kStages + stage); }

  std::uint32_t barriers_;
  std::uint32_t stage_ = 0;
  std::uint32_t parity_ = 0;
};

#endif

}  // namespace inferometer
