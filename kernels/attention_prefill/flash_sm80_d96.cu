// attention_prefill / flash_sm80 for head_dim up to 96.
#include "kernels/attention_prefill/flash_sm80_launch.cuh"

namespace inferometer {
namespace {

// O takes 96 registers and S 64; Q's 48 would fit, but leave the compiler no room to order loads: 0.92x (H200, 4 x 4096
// tokens, full: 373 TFLOP/s).
template <class T>
using Config = FlashConfig<T, 96, 4, 2, 64, false, 2>;

}  // namespace

template <>
void launch_flash_sm80<96>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                           Stream stream) {
  with_half_type(problem.dtype, [&]<class T>() { launch_flash_config<Config<T>>(problem, tensors, stream); });
}

}  // namespace inferometer
