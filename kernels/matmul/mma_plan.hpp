// How cuda.f16_sm80 does a problem: which tile shape, how the work is split, what workspace it needs. Host only.
#pragma once

#include <cstddef>

#include "kernels/common/gpu_limits.hpp"
#include "kernels/matmul/work_split.cuh"
#include "reference/matmul/problem.hpp"

namespace inferometer {

struct MmaPlan {
  int shape = 0;  // in kTileTable
  WorkSplit split{};

  // Workspace, when the split shares tiles: sums, then arrivals from a 256-byte boundary.
  std::size_t arrivals_at = 0;
  std::size_t workspace_bytes = 0;
};

// The shape and split with the least predicted time; the same for the same problem and limits.
MmaPlan make_mma_plan(const MatmulProblem& p, const GpuLimits& gpu);

}  // namespace inferometer
