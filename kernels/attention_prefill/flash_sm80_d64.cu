// attention_prefill / flash_sm80 for head_dim up to 64.
#include "kernels/attention_prefill/flash_sm80_launch.cuh"

namespace inferometer {
namespace {

template <class T>
using Config = FlashConfig<T, 64, 4, 2, 64, true, 2>;

}  // namespace

template <>
void launch_flash_sm80<64>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                           Stream stream) {
  with_half_type(problem.dtype, [&]<class T>() { launch_flash_config<Config<T>>(problem, tensors, stream); });
}

}  // namespace inferometer
