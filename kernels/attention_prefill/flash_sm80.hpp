// attention_prefill / flash_sm80: FlashAttention on mma.sync, for GPUs of compute capability 8.0 and later.
#pragma once

#include <optional>
#include <string>

#include "harness/operator/variant.hpp"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {

// A sentence when the kernel cannot do the problem.
std::optional<std::string> flash_sm80_unsupported(const AttentionPrefillProblem& problem);

// Throws CudaError.
void run_flash_sm80(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                    const Launch& launch);

}  // namespace inferometer
