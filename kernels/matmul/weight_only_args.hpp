// The weights as the kernels of cuda.w4a16 and cuda.w8a16 take them.
#pragma once

#include "kernels/matmul/packing.hpp"

namespace inferometer {

struct PackedWeights {
  const unsigned char* tiles;
  PackedShape shape;
};

}  // namespace inferometer
