#include "kernels/matmul/mma_kernel_table.cuh"

namespace inferometer {

template <>
MmaKernel<__half> mma_kernel<__half>(int shape) {
  return mma_kernel_of_table<__half>(shape);
}

}  // namespace inferometer
