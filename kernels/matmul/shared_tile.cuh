// Tiles of Y that several blocks sum up: each leaves its f32 sums in the workspace, and the last to arrive adds them
// all in the order of the blocks, whoever was last, so the result is the same bit for bit.
#pragma once

#include <cstdint>

#include "kernels/matmul/mma_args.hpp"
#include "kernels/matmul/mma_mainloop.cuh"
#include "kernels/matmul/work_split.cuh"

namespace inferometer {

// All threads of the block call, once their warps' sums of this block's slices of tile (m, n) are complete. Returns
// whether this block came last; `sums` then holds those of the whole tile.
template <class Tile>
__device__ bool merge_shared_tile(const SharedSums& shared, const WorkSplit& split, std::int64_t m, std::int64_t n,
                                  WarpSums<Tile>& sums) {
  constexpr int kColumns = WarpTiles<Tile>::kColumns;
  constexpr int kVectors = WarpTiles<Tile>::kRows * kColumns;
  constexpr int kThreads = Tile::kShape.threads();
  const std::int64_t first = split.first_team(n);
  const std::int64_t last = split.last_team(n);

  float4* const own = shared.sums + split.slot(blockIdx.x / split.tiles_m, m, n) * kVectors * kThreads + threadIdx.x;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const float(&s)[4] = sums[v / kColumns][v % kColumns];
    own[v * kThreads] = make_float4(s[0], s[1], s[2], s[3]);
  }
  __threadfence();  // the sums before the arrival that announces them
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned& arrivals = shared.arrivals[n * split.tiles_m + m];
    is_last = atomicAdd(&arrivals, 1U) == static_cast<unsigned>(last - first);
    if (is_last) arrivals = 0;  // for the next launch
  }
  __syncthreads();
  if (!is_last) return false;
  __threadfence();  // the arrivals before the sums they announced

#pragma unroll
  for (int v = 0; v < kVectors; ++v)
#pragma unroll
    for (float& s : sums[v / kColumns][v % kColumns]) s = 0.0F;
  for (std::int64_t team = first; team <= last; ++team) {
    const float4* const other = shared.sums + split.slot(team, m, n) * kVectors * kThreads + threadIdx.x;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const float4 part = __ldcg(&other[v * kThreads]);  // from L2: L1 may hold what an earlier launch left here
      float(&s)[4] = sums[v / kColumns][v % kColumns];
      s[0] += part.x;
      s[1] += part.y;
      s[2] += part.z;
      s[3] += part.w;
    }
  }
  return true;
}

}  // namespace inferometer
