#include "kernels/matmul/mma_kernel_table.cuh"

namespace inferometer {

template <>
MmaKernel<__nv_bfloat16> mma_kn_kernel<__nv_bfloat16>(int shape) {
  return mma_kernel_of_table<__nv_bfloat16, KnTableTile>(shape);
}

}  // namespace inferometer
