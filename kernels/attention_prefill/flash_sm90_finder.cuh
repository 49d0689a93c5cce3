// attention_prefill / flash_sm90: finds tiles and tells the other warps. Of a thread block with one team a warp of its
// own does: a tile takes some 300 instructions to find, most of them for divisions, and the copies of keys need not
// wait for it. Of two teams, whose copying warps are as many as fit, it is the warp that copies Q and K.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm90_ring.hpp"
#include "kernels/attention_prefill/flash_sm90_shared.cuh"
#include "kernels/attention_prefill/flash_sm90_work.cuh"
#include "kernels/ptx/mbarrier.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// All lanes of a warp together.
template <class Shape>
class TileFinder {
 public:
  __device__ TileFinder(const FlashSm90Params& params, FlashSm90Shared<Shape>& shared)
      : p(params), s(shared), lane(static_cast<int>(threadIdx.x) % 32) {}

  // First tiles go to one team of each SM, then to the other. False when there is none.
  __device__ bool first(int team) { return find(team * gridDim.x + blockIdx.x); }

  // Takes the next tile's number: the answer takes a while.
  __device__ void take() {
    if (lane == 0) taken = atomicInc(p.next_tile, ~1U);  // for atomicAdd the compiler would wait at once
  }
  // The tile whose number was taken.
  __device__ bool next() { return find(teams() + __shfl_sync(kWholeWarp, taken, 0)); }

  // The last team to find no tile left: no other will ask again in this launch.
  __device__ void leave_counters_clean() {
    __threadfence();  // this block's additions to next_tile come before its addition to blocks_done
    if (lane != 0 || atomicAdd(p.blocks_done, 1U) != teams() - 1) return;
    __threadfence();  // and before the zero
    *p.next_tile = 0;
    *p.blocks_done = 0;
  }

 private:
  static constexpr unsigned kWholeWarp = 0xffffffffU;

  __device__ bool find(std::uint32_t index) {
    const PrefillWork found = find_work<Shape>(p, index);
    mbarrier_wait(shared_address(&s.work_read[slot.stage()]), slot.parity() ^ 1);
    PrefillWork& work = s.work[slot.stage()];
    if (lane == 0) work = found;
    __syncwarp();
    if (lane < Shape::kWarpgroups) {
      WarpgroupWork& its = s.warpgroup_work[slot.stage()][lane];
      its = warpgroup_keys<Shape>(work, lane);
      place_outputs<Shape>(p, work, lane, its);
    }
    __syncwarp();
    if (lane < Shape::kWarpgroups) mbarrier_arrive(shared_address(&s.work_ready[slot.stage()]));
    slot.advance();
    return found.valid;
  }

  __device__ static std::uint32_t teams() { return gridDim.x * Shape::kTeams; }

  const FlashSm90Params& p;
  FlashSm90Shared<Shape>& s;
  const int lane;
  std::uint32_t taken = 0;  // lane 0: counted from teams()
  Ring<Shape::kWorkStages> slot;
};

// Of one team. Finds a tile whenever the warp that copies Q and K wants the next.
template <class Shape>
__device__ void find_tiles(const FlashSm90Params& params, FlashSm90Shared<Shape>& shared) {
  TileFinder<Shape> finder(params, shared);
  Ring<1> wanted;
  for (bool found = finder.first(0); found; found = finder.next()) {
    mbarrier_wait(shared_address(&shared.tile_wanted), wanted.parity());
    __syncwarp();
    finder.take();
    wanted.advance();
  }
  finder.leave_counters_clean();
}

#endif

}  // namespace inferometer
