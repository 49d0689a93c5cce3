// attention_prefill / flash_sm90: head_dim 128, blocks of keys by their number.
#include "kernels/attention_prefill/flash_sm90_launch.cuh"

namespace inferometer {

template <>
void launch_flash_sm90<128, 128>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                                 const Launch& launch) {
  const std::int64_t long_from = problem.causal ? 2048 : 1024;
  if (problem.kv_len < long_from || problem.paged()) {
    launch_flash_sm90_shape<FlashSm90D128Short>(problem, tensors, launch);
  } else {
    launch_flash_sm90_shape<FlashSm90D128, FlashSm90D128Short>(problem, tensors, launch);
  }
}

}  // namespace inferometer
