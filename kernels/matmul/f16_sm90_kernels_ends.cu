#include <stdexcept>

#include "kernels/matmul/f16_sm90_kernel_table.cuh"

namespace inferometer {

const void* gated_f16_sm90_kernel(int tile) { return f16_sm90_kernel_of_table<__half, GatedEnd>(tile); }

const void* residual_f16_sm90_kernel(int tile) {
  static_assert(Sm90TableTile<0>::kTile.has_late_norm() && Sm90TableTile<1>::kTile.has_late_norm());
  switch (tile) {
    case 0: return reinterpret_cast<const void*>(&sm90_matmul_kernel<__half, Sm90TableTile<0>, ResidualEnd>);
    case 1: return reinterpret_cast<const void*>(&sm90_matmul_kernel<__half, Sm90TableTile<1>, ResidualEnd>);
    default: throw std::invalid_argument("a residual product: no tile for more than 32 tokens");
  }
}

}  // namespace inferometer
