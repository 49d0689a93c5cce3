// attention_prefill / flash_sm80 for head_dim up to 192.
#include "kernels/attention_prefill/flash_sm80_launch.cuh"

namespace inferometer {
namespace {

// O takes all of 192 registers with 32 rows a warp, and about 25 words around the loop are spilled; still 1.11x
// of 16 keys without spills and 1.15x of 16 rows a warp (H200, 4 x 4096 tokens, full: 324 TFLOP/s).
template <class T>
using Narrow = FlashConfig<T, 192, 4, 2, 32, false, 2>;

// Where a block can have 144 KiB of shared memory: 16 rows a warp, so that Q stays in registers and nothing is spilled,
// and 8 warps to each copy of K and V, of which there are three. 1.21-1.25x of Narrow from 4 x 4096 tokens
// on, 1.03-1.06x at 32 x 512 (H200, 4 x 4096, full: 397 TFLOP/s; causal: 381). With two stages at which the block
// meets: 336.
template <class T>
using Wide = FlashConfig<T, 192, 8, 1, 64, true, 1, 3>;

}  // namespace

template <>
void launch_flash_sm80<192>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                            Stream stream) {
  with_half_type(problem.dtype,
                 [&]<class T>() { launch_flash_that_fits<Wide<T>, Narrow<T>>(problem, tensors, stream); });
}

}  // namespace inferometer
