#include "kernels/matmul/f16_sm90_kernel_table.cuh"

namespace inferometer {

template <>
const void* f16_sm90_kn_kernel<__half>(int tile) {
  return f16_sm90_kernel_of_table<__half, RoundedOutput<__half>, Sm90KnTile>(tile);
}

}  // namespace inferometer
