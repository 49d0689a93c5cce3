// attention_prefill / flash_sm90: head_dim 128, tiles by the problem's lengths and cache.
#include "kernels/attention_prefill/flash_sm90_choice.hpp"
#include "kernels/attention_prefill/flash_sm90_launch.cuh"

namespace inferometer {

template <>
void launch_flash_sm90<128, 128>(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                                 const Launch& launch) {
  const auto run = [&]<class Shape>() {
    launch_flash_sm90_shape<Shape, FlashSm90D128Capped>(problem, tensors, launch);
  };
  switch (flash_sm90_d128_tiles(problem, current_gpu_limits().sm_count)) {
    case FlashSm90D128Tiles::short_tiles: return run.template operator()<FlashSm90D128Short>();
    case FlashSm90D128Tiles::long_tiles: return run.template operator()<FlashSm90D128Long>();
    case FlashSm90D128Tiles::paged: return run.template operator()<FlashSm90D128Paged>();
  }
}

}  // namespace inferometer
