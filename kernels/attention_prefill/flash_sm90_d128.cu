// attention_prefill / flash_sm90: head_dim 128, blocks of keys by their number.
#include "kernels/attention_prefill/flash_sm90_launch.cuh"

namespace inferometer {

template <>
void launch_flash_sm90<128, 128>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                                 const Launch& launch) {
  const std::int64_t middle_from = problem.causal ? 4096 : 1024;
  if (problem.soft_cap > 0 || problem.kv_len < middle_from) {
    launch_flash_sm90_shape<FlashSm90D128Short>(problem, tensors, launch);
  } else if (problem.kv_len < 4096) {
    launch_flash_sm90_shape<FlashSm90D128Middle, false>(problem, tensors, launch);
  } else {
    launch_flash_sm90_shape<FlashSm90D128Long, false>(problem, tensors, launch);
  }
}

}  // namespace inferometer
