#include "kernels/weight_quantization/inverse_factor.hpp"

#include <algorithm>

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/cublas.hpp"

namespace inferometer {
namespace {

constexpr int kTile = kFactorTile;
constexpr int kThreads = 256;
constexpr int kThreadRows = kThreads / kTile;

// The diagonal tile at `begin`: the same steps as for tiles, element by element.
__global__ void __launch_bounds__(kThreads)
    invert_tile_kernel(const GptqWorkspace memory, std::int64_t k, std::int64_t begin, int size) {
  __shared__ double a[kTile][kTile];
  __shared__ double pivots[kTile];  // column c above the diagonal, 1 / r_cc, row c of U
  const int column = threadIdx.x % kTile;
  const int first_row = threadIdx.x / kTile;
  double* const tile = memory.h + begin * k + begin;
  for (int row = first_row; row < size; row += kThreadRows)
    a[row][column] = column < size && row <= column ? tile[row * k + column] : 0;
  const double least_pivot = static_cast<double>(k) * 0x1p-52;
  for (int c = size - 1; c >= 0; --c) {
    __syncthreads();
    if (threadIdx.x < kTile) {
      double pivot = a[c][c];
      if (!(pivot > least_pivot * memory.diagonal[begin + c])) {  // NaN too
        pivot = 1;
        memory.status->failed = 1;
      }
      const double root = sqrt(pivot);
      const double element = column < c ? a[column][c] : column == c ? 1 : a[c][column];
      pivots[column] = element / root;
    }
    __syncthreads();
    for (int row = first_row; row < c; row += kThreadRows)
      a[row][column] = (column == c ? 0 : a[row][column]) - pivots[row] * pivots[column];
    if (first_row == 0 && column >= c) a[c][column] = pivots[column];
  }
  __syncthreads();
  for (int row = first_row; row < size; row += kThreadRows)
    if (row <= column && column < size) tile[row * k + column] = a[row][column];
}

}  // namespace

void launch_inverse_factor(const WeightQuantizationProblem& p, const GptqWorkspace& memory, Stream stream) {
  const cublasHandle_t blas = cublas_handle(stream, memory.cublas);
  const double one = 1;
  const double minus_one = -1;
  const auto k = static_cast<int>(p.k);
  // cuBLAS sees columns where we have rows: every matrix transposed, an upper triangle as a lower one.
  constexpr auto kLower = CUBLAS_FILL_MODE_LOWER;
  for (int begin = (k - 1) / kTile * kTile; begin >= 0; begin -= kTile) {
    const int size = std::min(kTile, k - begin);
    const int end = begin + size;
    const int behind = k - end;
    double* const u_pp = memory.h + std::int64_t{begin} * k + begin;
    double* const row = memory.h + std::int64_t{begin} * k + end;  // [size, behind]
    double* const column = memory.h + begin;                       // [begin, size]
    invert_tile_kernel<<<1, kThreads, 0, stream>>>(memory, k, begin, size);
    INFEROMETER_CUDA_CHECK(cudaGetLastError());
    if (behind > 0)  // U_p,>p = U_pp B_p,>p
      INFEROMETER_CUBLAS_CHECK(cublasDtrmm(blas, CUBLAS_SIDE_RIGHT, kLower, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, behind,
                                           size, &one, u_pp, k, row, k, row, k));
    if (begin == 0) continue;
    // P = H_<p,p U_pp^T  [begin, size]
    INFEROMETER_CUBLAS_CHECK(cublasDtrmm(blas, CUBLAS_SIDE_LEFT, kLower, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, size, begin,
                                         &one, u_pp, k, column, k, memory.panel, kTile));
    if (behind > 0)  // B_<p,>p -= P U_p,>p
      INFEROMETER_CUBLAS_CHECK(cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, behind, begin, size, &minus_one, row, k,
                                           memory.panel, kTile, &one, memory.h + end, k));
    // B_<p,p = -P U_pp
    INFEROMETER_CUBLAS_CHECK(cublasDtrmm(blas, CUBLAS_SIDE_LEFT, kLower, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, size, begin,
                                         &minus_one, u_pp, k, memory.panel, kTile, column, k));
    // H_<p,<p -= P P^T
    INFEROMETER_CUBLAS_CHECK(
        cublasDsyrk(blas, kLower, CUBLAS_OP_T, begin, size, &minus_one, memory.panel, kTile, &one, memory.h, k));
  }
}

}  // namespace inferometer
