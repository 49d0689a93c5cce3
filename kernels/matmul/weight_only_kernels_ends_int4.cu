#include "kernels/matmul/weight_only_kernel_table.cuh"

namespace inferometer {

INFEROMETER_WEIGHT_ONLY_ENDS(4)

}  // namespace inferometer
