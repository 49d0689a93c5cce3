// attention_prefill / flash_sm90: head_dim 96.
#include "kernels/attention_prefill/flash_sm90_launch.cuh"

namespace inferometer {

template <>
void launch_flash_sm90<96, 96>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                               const Launch& launch) {
  launch_flash_sm90_shape<FlashSm90D96, FlashSm90D96Capped>(problem, tensors, launch);
}

}  // namespace inferometer
