// What a GPU attains: reading, copying, matrix products, single-precision multiply-adds. CUDA builds only.
#pragma once

#include "harness/measure/device.hpp"

namespace inferometer {

// Under a second. Each rate is that of the fastest of several passes on random data: a ceiling is what can be reached,
// and products of zeros run faster than any real ones. A rate whose library has no kernel for this GPU is absent.
Ceilings measure_gpu_ceilings(const Launch& launch, std::size_t l2_bytes);

}  // namespace inferometer
