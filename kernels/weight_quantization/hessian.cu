#include "kernels/weight_quantization/hessian.hpp"

#include <algorithm>

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/cublas.hpp"

namespace inferometer {
namespace {

constexpr int kThreads = 256;
constexpr int kDampingThreads = 1024;
constexpr std::int64_t kMostBlocks = 4096;  // of grids whose threads stride over their elements

__global__ void __launch_bounds__(kThreads)
    widen_kernel(const float* __restrict__ from, double* __restrict__ to, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads)
    to[i] = static_cast<double>(from[i]);
}

// One block: the mean must be known before the first element of the diagonal changes.
__global__ void __launch_bounds__(kDampingThreads) damping_kernel(const GptqWorkspace memory, int k, double damping) {
  __shared__ double sums[kDampingThreads];
  __shared__ int counts[kDampingThreads];
  const std::int64_t stride = std::int64_t{k} + 1;
  double sum = 0;
  int count = 0;
  for (int i = threadIdx.x; i < k; i += kDampingThreads) {
    const double element = memory.h[i * stride];
    sum += element;
    count += element > 0 ? 1 : 0;
  }
  sums[threadIdx.x] = sum;
  counts[threadIdx.x] = count;
  for (int half = kDampingThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    sums[threadIdx.x] += sums[threadIdx.x + half];
    counts[threadIdx.x] += counts[threadIdx.x + half];
  }
  __syncthreads();
  const int live_inputs = counts[0];
  const double mean = live_inputs > 0 ? sums[0] / live_inputs : 0;
  for (int i = threadIdx.x; i < k; i += kDampingThreads) {
    const double element = memory.h[i * stride];
    // NaN is no dead input: it stays, and fails as a pivot.
    const double damped = element == 0 ? 1 : element + damping * mean;
    memory.h[i * stride] = damped;
    memory.diagonal[i] = damped;
    memory.live[i] = element != 0 || live_inputs == 0 ? 1 : 0;
  }
  if (threadIdx.x != 0) return;
  memory.status->mean = mean;
  memory.status->live_inputs = live_inputs;
  memory.status->failed = 0;
}

}  // namespace

void launch_hessian(const WeightQuantizationProblem& p, const float* x, const GptqWorkspace& memory, Stream stream) {
  const cublasHandle_t blas = cublas_handle(stream, memory.cublas);
  const auto k = static_cast<int>(p.k);
  const double share = 1 / static_cast<double>(p.calibration_tokens);
  for (std::int64_t first = 0; first < p.calibration_tokens; first += kTokensAtOnce) {
    const std::int64_t tokens = std::min(kTokensAtOnce, p.calibration_tokens - first);
    const std::int64_t count = tokens * p.k;
    const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, (count + kThreads - 1) / kThreads));
    widen_kernel<<<blocks, kThreads, 0, stream>>>(x + first * p.k, memory.tokens, count);
    INFEROMETER_CUDA_CHECK(cudaGetLastError());
    // Row-major [tokens, k] is column-major X^T, and a row-major upper triangle a column-major lower one.
    const double before = first == 0 ? 0 : 1;
    INFEROMETER_CUBLAS_CHECK(cublasDsyrk(blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, k, static_cast<int>(tokens), &share,
                                         memory.tokens, k, &before, memory.h, k));
  }
}

void launch_damping(const WeightQuantizationProblem& p, double damping, const GptqWorkspace& memory, Stream stream) {
  damping_kernel<<<1, kDampingThreads, 0, stream>>>(memory, static_cast<int>(p.k), damping);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

}  // namespace inferometer
