#include "kernels/matmul/w8a8_kernel_table.cuh"

namespace inferometer {

template <>
const void* w8a8_kernel<__half>(int tile) {
  return w8a8_kernel_of_table<__half>(tile);
}

}  // namespace inferometer
