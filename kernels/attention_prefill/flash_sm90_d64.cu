// attention_prefill / flash_sm90: head_dim 64, tiles by the number of keys.
#include "kernels/attention_prefill/flash_sm90_choice.hpp"
#include "kernels/attention_prefill/flash_sm90_launch.cuh"

namespace inferometer {

template <>
void launch_flash_sm90<64, 64>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                               const Launch& launch) {
  if (flash_sm90_d64_takes_teams(problem)) {
    launch_flash_sm90_shape<FlashSm90D64Teams, FlashSm90D64Capped>(problem, tensors, launch);
  } else {
    launch_flash_sm90_shape<FlashSm90D64, FlashSm90D64Capped>(problem, tensors, launch);
  }
}

}  // namespace inferometer
