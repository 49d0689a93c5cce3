// attention_prefill / cuda.flash: the fastest FlashAttention of this program that does the problem on this GPU.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <optional>
#include <string>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/attention_prefill/flash_sm80.hpp"
#include "kernels/attention_prefill/flash_sm90.hpp"
#include "kernels/common/sm90_only.hpp"

namespace inferometer {
namespace {

// flash_sm80 does every problem that flash_sm90 does.
std::optional<std::string> unsupported(const AttentionPrefillProblem& p) { return flash_sm80_unsupported(p); }

std::size_t workspace_bytes(const AttentionPrefillProblem& p) { return flash_sm90_workspace_bytes(p); }

void run(const AttentionPrefillProblem& p, const AttentionPrefillTensors& t, const Launch& launch) {
  if (on_sm90() && !flash_sm90_unsupported(p)) {
    run_flash_sm90(p, t, launch);
  } else {
    run_flash_sm80(p, t, launch);
  }
}

const RegisterVariant<AttentionPrefill> registered{{
    .name = "cuda.flash",
    .summary = "FlashAttention: flash_sm90 where it can, else flash_sm80",
    .min_sm = 80,
    .unsupported = &unsupported,
    .workspace_bytes = &workspace_bytes,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
