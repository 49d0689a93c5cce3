// attention_prefill / flash_sm80 for head_dim up to 64.
#include "kernels/attention_prefill/flash_sm80_launch.cuh"

namespace inferometer {
namespace {

// 32 rows a warp: a fragment of K or V read from shared memory then feeds four products, not two. O and S take 64
// registers each, Q's fragments 32: they stay. On an H200, 4 x 4096 tokens, full: 330 TFLOP/s. Other shapes, each
// beside this one: 16 rows a warp with the next S overlapped 0.86x, 32 keys and three blocks an SM 0.88x, Q read again
// 0.93x.
template <class T>
using Config = FlashConfig<T, 64, 4, 2, 64, true, 2>;

}  // namespace

template <>
void launch_flash_sm80<64>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                           Stream stream) {
  with_half_type(problem.dtype, [&]<class T>() { launch_flash_config<Config<T>>(problem, tensors, stream); });
}

}  // namespace inferometer
