// attention_prefill / flash_sm80 for head_dim up to 256.
#include "kernels/attention_prefill/flash_sm80_launch.cuh"

namespace inferometer {
namespace {

// 16 rows a warp: 32 would need 256 registers for O alone. 32 keys and 64 queries keep shared memory at 96 KiB, what
// sm_86 and sm_89 have. Q in registers: 1.07x (H200, 4 x 4096 tokens, full: 307 TFLOP/s).
template <class T>
using Narrow = FlashConfig<T, 256, 4, 1, 32, true, 2>;

// Where a block can have 128 KiB of shared memory: 8 warps to each copy of K and V, of which there are four. A word or
// two are spilled, and not for plain problems. 1.10-1.14x of Narrow from 4 x 4096 tokens on, 0.97-1.03x at 32 x 512
// (H200, 4 x 4096, full: 350 TFLOP/s; causal: 338). Three copies of 64 keys, which spill more: 312.
template <class T>
using Wide = FlashConfig<T, 256, 8, 1, 32, true, 1, 4>;

}  // namespace

template <>
void launch_flash_sm80<256>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                            Stream stream) {
  with_half_type(problem.dtype,
                 [&]<class T>() { launch_flash_that_fits<Wide<T>, Narrow<T>>(problem, tensors, stream); });
}

}  // namespace inferometer
