// attention_prefill / flash_sm90: head_dim 64.
#include "kernels/attention_prefill/flash_sm90_launch.cuh"

namespace inferometer {

template <>
void launch_flash_sm90<64, 64>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                               const Launch& launch) {
  launch_flash_sm90_shape<FlashSm90D64, FlashSm90D64Capped>(problem, tensors, launch);
}

}  // namespace inferometer
