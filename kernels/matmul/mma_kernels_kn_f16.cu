#include "kernels/matmul/mma_kernel_table.cuh"

namespace inferometer {

template <>
MmaKernel<__half> mma_kn_kernel<__half>(int shape) {
  return mma_kernel_of_table<__half, KnTableTile>(shape);
}

}  // namespace inferometer
