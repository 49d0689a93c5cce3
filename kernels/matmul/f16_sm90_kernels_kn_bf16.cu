#include "kernels/matmul/f16_sm90_kernel_table.cuh"

namespace inferometer {

template <>
const void* f16_sm90_kn_kernel<__nv_bfloat16>(int tile) {
  return f16_sm90_kernel_of_table<__nv_bfloat16, RoundedOutput<__nv_bfloat16>, Sm90KnTile>(tile);
}

}  // namespace inferometer
