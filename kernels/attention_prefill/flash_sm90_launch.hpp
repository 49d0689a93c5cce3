// attention_prefill / flash_sm90: its launchers, one file for each width of heads.
#pragma once

#include "harness/operator/variant.hpp"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {

// For problems of exactly this head_dim and v_dim. Throws CudaError, and std::runtime_error on a GPU of another compute
// capability than 9.0.
template <int kHeadDim, int kVDim>
void launch_flash_sm90(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                       const Launch& launch);

}  // namespace inferometer
