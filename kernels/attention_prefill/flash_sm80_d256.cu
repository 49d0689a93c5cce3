// attention_prefill / flash_sm80 for head_dim up to 256.
#include "kernels/attention_prefill/flash_sm80_launch.cuh"

namespace inferometer {
namespace {

// 16 rows a warp: 32 would need 256 registers for O alone. 32 keys and 64 queries keep shared memory at 96 KiB, what
// sm_86 and sm_89 have. Q in registers: 1.07x (H200, 4 x 4096 tokens, full: 307 TFLOP/s).
template <class T>
using Config = FlashConfig<T, 256, 4, 1, 32, true, 2>;

}  // namespace

template <>
void launch_flash_sm80<256>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                            Stream stream) {
  with_half_type(problem.dtype, [&]<class T>() { launch_flash_config<Config<T>>(problem, tensors, stream); });
}

}  // namespace inferometer
