// attention_prefill / flash_sm90: FlashAttention on wgmma, for GPUs of compute capability 9.0.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "harness/operator/variant.hpp"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {

// A sentence when the kernel cannot do the problem.
std::optional<std::string> flash_sm90_unsupported(const AttentionPrefillProblem& problem);

// Two counters that are 0 between launches.
std::size_t flash_sm90_workspace_bytes(const AttentionPrefillProblem& problem);

// Throws CudaError, and std::runtime_error on a GPU of another compute capability.
void run_flash_sm90(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                    const Launch& launch);

}  // namespace inferometer
