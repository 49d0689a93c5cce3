// How cuda.f16_sm90 does a problem: which tile, how many blocks, and whether clusters share W or share out k. Host
// only.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/gpu_limits.hpp"
#include "kernels/matmul/sm90_work.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {

struct Sm90Plan {
  int tile = 0;  // in kSm90Tiles
  Sm90Work work{};
  std::uint32_t blocks = 0;  // of the grid, a multiple of work.split
};

// All plans that compute the problem; make_sm90_plan takes one of them.
std::vector<Sm90Plan> sm90_plans(const MatmulProblem& p, const GpuLimits& gpu);

// What a plan is expected to take, the launch included.
double predicted_ns(const MatmulProblem& p, const Sm90Plan& plan, const GpuLimits& gpu);

// The plan with the least predicted time; the same for the same problem and limits.
Sm90Plan make_sm90_plan(const MatmulProblem& p, const GpuLimits& gpu);

// The same among plans that hold all of X in a tile that has_late_norm(): for up to kSm90LateNormTokens.
Sm90Plan make_sm90_late_norm_plan(const MatmulProblem& p, const GpuLimits& gpu);

}  // namespace inferometer
