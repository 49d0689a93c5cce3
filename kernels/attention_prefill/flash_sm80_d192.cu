// attention_prefill / flash_sm80 for head_dim up to 192.
#include "kernels/attention_prefill/flash_sm80_launch.cuh"

namespace inferometer {
namespace {

// O takes all of 192 registers with 32 rows a warp, and about 25 words around the loop are spilled; still 1.11x
// of 16 keys without spills and 1.15x of 16 rows a warp (H200, 4 x 4096 tokens, full: 324 TFLOP/s).
template <class T>
using Config = FlashConfig<T, 192, 4, 2, 32, false, 2>;

}  // namespace

template <>
void launch_flash_sm80<192>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                            Stream stream) {
  with_half_type(problem.dtype, [&]<class T>() { launch_flash_config<Config<T>>(problem, tensors, stream); });
}

}  // namespace inferometer
