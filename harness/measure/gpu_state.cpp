#include "harness/measure/gpu_state.hpp"

#ifndef INFEROMETER_WITH_CUDA

namespace inferometer {

std::optional<GpuState> read_gpu_state(int /*ordinal*/) { return std::nullopt; }

}  // namespace inferometer

#endif
