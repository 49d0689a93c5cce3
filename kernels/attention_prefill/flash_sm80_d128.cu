// attention_prefill / flash_sm80 for head_dim up to 128.
#include "kernels/attention_prefill/flash_sm80_launch.cuh"

namespace inferometer {
namespace {

// O takes 128 registers: Q is read again at each tile. 48 keys, not 64, because S then takes 48 registers and nothing
// is spilled on any architecture: 1.02-1.05x from 2k tokens on, 0.96-0.98x up to 1k, where the last tile wastes more.
// On an H200, 4 x 4096 tokens, full: 389 TFLOP/s. Slower: 32 keys with Q in registers 0.85x, 16 rows a warp 0.83x.
template <class T>
using Config = FlashConfig<T, 128, 4, 2, 48, false, 2>;

}  // namespace

template <>
void launch_flash_sm80<128>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                            Stream stream) {
  with_half_type(problem.dtype, [&]<class T>() { launch_flash_config<Config<T>>(problem, tensors, stream); });
}

}  // namespace inferometer
