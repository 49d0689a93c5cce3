// attention_prefill / flash_sm90: head_dim 192, v_head_dim 128.
#include "kernels/attention_prefill/flash_sm90_launch.cuh"

namespace inferometer {

template <>
void launch_flash_sm90<192, 128>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                                 const Launch& launch) {
  launch_flash_sm90_shape<FlashSm90D192V128>(problem, tensors, launch);
}

}  // namespace inferometer
