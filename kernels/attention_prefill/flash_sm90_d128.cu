// attention_prefill / flash_sm90: head_dim 128, blocks of keys by their number.
#include "kernels/attention_prefill/flash_sm90_launch.cuh"

namespace inferometer {

template <>
void launch_flash_sm90<128, 128>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                                 const Launch& launch) {
  const std::int64_t middle_from = problem.causal ? 4096 : 1024;
  if (problem.kv_len < middle_from) {
    launch_flash_sm90_shape<FlashSm90D128Short>(problem, tensors, launch);
  } else if (problem.kv_len < 4096) {
    launch_flash_sm90_shape<FlashSm90D128Middle, FlashSm90D128Short>(problem, tensors, launch);
  } else {
    launch_flash_sm90_shape<FlashSm90D128Long, FlashSm90D128Short>(problem, tensors, launch);
  }
}

}  // namespace inferometer
