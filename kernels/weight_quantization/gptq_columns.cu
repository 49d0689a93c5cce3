#include "kernels/weight_quantization/gptq_columns.hpp"

#include <algorithm>

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/cublas.hpp"
#include "kernels/weight_quantization/device_grid.cuh"
#include "reference/weight_quantization/problem.hpp"

namespace inferometer {
namespace {

constexpr int kLanes = 32;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kLanes;             // a row of W each
constexpr int kLaneColumns = kBlockColumns / kLanes;  // lane l holds columns l, l + 32
constexpr unsigned kWholeWarp = 0xffffffffU;
constexpr std::int64_t kMostBlocks = 1056;  // 8 for each multiprocessor of an H200; they stride over rows
constexpr std::int64_t kCopyThreads = 256;

struct ColumnArgs {
  GptqWorkspace memory;
  const float* weights;  // [n, k] as given
  std::int32_t* codes;   // [n, k]
  std::int32_t* scales;  // [n, groups]
  std::int32_t* zeros;   // [n, groups]
  std::int64_t n;
  std::int64_t k;
  std::int64_t group_width;
  std::int64_t groups;
  DeviceGridFormat format;
};

// memory.w from the weights as given; inputs that are always 0 lose theirs.
__global__ void __launch_bounds__(kCopyThreads) load_weights_kernel(const ColumnArgs a) {
  for (std::int64_t row = blockIdx.x; row < a.n; row += gridDim.x)
    for (std::int64_t i = threadIdx.x; i < a.k; i += kCopyThreads)
      a.memory.w[row * a.k + i] = a.memory.live[i] != 0 ? static_cast<double>(a.weights[row * a.k + i]) : 0;
}

__device__ double warp_sum(double value) {
  for (int other = kLanes / 2; other > 0; other /= 2) value += __shfl_xor_sync(kWholeWarp, value, other);
  return value;
}

// A warp's row within a block of columns.
struct Row {
  std::int64_t number;
  std::int64_t begin;  // first column of the block
  int width;
  double w[kLaneColumns];  // as updated so far
};

// The grid of the group that begins at column `first` of W: of all its weights, those of the block in registers, those
// behind it, if any, in memory.
__device__ DeviceGrid choose_grid(const ColumnArgs& a, const Row& row, std::int64_t first, int lane) {
  const std::int64_t end = min(first + a.group_width, a.k);
  float least = 0;
  float greatest = 0;
  const auto see = [&](double weight) {
    least = fminf(least, static_cast<float>(weight));
    greatest = fmaxf(greatest, static_cast<float>(weight));
  };
#pragma unroll
  for (int part = 0; part < kLaneColumns; ++part)
    if (const int i = part * kLanes + lane; i < row.width && row.begin + i >= first && row.begin + i < end)
      see(row.w[part]);
  for (std::int64_t i = row.begin + row.width + lane; i < end; i += kLanes) see(a.memory.w[row.number * a.k + i]);
  for (int other = kLanes / 2; other > 0; other /= 2) {
    least = fminf(least, __shfl_xor_sync(kWholeWarp, least, other));
    greatest = fmaxf(greatest, __shfl_xor_sync(kWholeWarp, greatest, other));
  }
  return grid_of_range(a.format, least, greatest);
}

// The grid of the group at column `at`, which begins there or began in an earlier block.
__device__ DeviceGrid take_grid(const ColumnArgs& a, const Row& row, std::int64_t at, int lane) {
  const std::int64_t place = row.number * a.groups + at / a.group_width;
  if (at % a.group_width != 0)
    return stored_grid(a.format, static_cast<std::uint16_t>(a.scales[place]), a.zeros[place]);
  const DeviceGrid grid = choose_grid(a, row, at, lane);
  if (lane == 0) {
    a.scales[place] = grid.scale_bits;
    a.zeros[place] = grid.zero;
  }
  return grid;
}

// Columns begin, ..., begin + width - 1 of all rows, which do not know of each other: a warp takes a row through them.
// For column i, q = nearest code of w_i, e = (w_i - dequantised q) / U_ii, w_j -= e U_ij for all j > i of the block;
// the e go to memory.errors for the columns behind it.
__global__ void __launch_bounds__(kThreads) gptq_columns_kernel(const ColumnArgs a, std::int64_t begin, int width) {
  __shared__ double u[kBlockColumns][kBlockColumns];  // 0 below the diagonal: finished columns do not move
  for (int place = threadIdx.x; place < kBlockColumns * kBlockColumns; place += kThreads) {
    const int i = place / kBlockColumns;
    const int j = place % kBlockColumns;
    u[i][j] = i <= j && j < width ? a.memory.h[(begin + i) * a.k + begin + j] : 0;
  }
  __syncthreads();
  const int lane = threadIdx.x % kLanes;
  for (std::int64_t number = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kLanes; number < a.n;
       number += std::int64_t{gridDim.x} * kWarps) {
    Row row = {.number = number, .begin = begin, .width = width};
    const std::int64_t at = number * a.k + begin;
#pragma unroll
    for (int part = 0; part < kLaneColumns; ++part) {
      const int i = part * kLanes + lane;
      row.w[part] = i < width ? a.memory.w[at + i] : 0;
    }
    DeviceGrid grid{};
    double squares = 0;
    double changes = 0;
#pragma unroll
    for (int part = 0; part < kLaneColumns; ++part) {
      std::int32_t code = 0;
      double error = 0;
      double worth = 0;
      for (int owner = 0; owner < kLanes && part * kLanes + owner < width; ++owner) {
        const int i = part * kLanes + owner;
        if (i == 0 || (begin + i) % a.group_width == 0) grid = take_grid(a, row, begin + i, lane);
        const double weight = __shfl_sync(kWholeWarp, row.w[part], owner);
        const std::int32_t nearest = nearest_code(a.format, grid, static_cast<float>(weight));
        const auto rounded = static_cast<double>(weight_of(grid, nearest));
        const double e = (weight - rounded) / u[i][i];
        squares += e * e;
        if (lane == owner) {
          code = nearest;
          error = e;
          worth = rounded;
        }
#pragma unroll
        for (int other = part; other < kLaneColumns; ++other) row.w[other] -= e * u[i][other * kLanes + lane];
      }
      const int i = part * kLanes + lane;
      if (i >= width) continue;
      a.codes[at + i] = code - a.format.least_code;
      a.memory.errors[number * kBlockColumns + i] = error;
      const double change = worth - static_cast<double>(a.weights[at + i]);
      if (a.memory.live[begin + i] != 0) changes += change * change;
    }
    changes = warp_sum(changes);
    if (lane != 0) continue;
    a.memory.row_squares[number] = (begin == 0 ? 0 : a.memory.row_squares[number]) + squares;
    a.memory.row_changes[number] = (begin == 0 ? 0 : a.memory.row_changes[number]) + changes;
  }
}

}  // namespace

void launch_gptq_columns(const WeightQuantizationProblem& p, const WeightQuantizationTensors& t,
                         const GptqWorkspace& memory, Stream stream) {
  const ResultLayout layout(p);
  const std::int32_t least_code = p.symmetric ? -(1 << (p.bits - 1)) : 0;
  const ColumnArgs args = {.memory = memory,
                           .weights = t.w,
                           .codes = t.result + ResultLayout::kCodes,
                           .scales = t.result + layout.scales,
                           .zeros = t.result + layout.zeros,
                           .n = p.n,
                           .k = p.k,
                           .group_width = p.group_size == 0 ? p.k : p.group_size,
                           .groups = p.groups(),
                           .format = {.least_code = least_code,
                                      .largest_code = least_code + (1 << p.bits) - 1,
                                      .symmetric = p.symmetric,
                                      .f16_scales = p.scale_dtype == Dtype::f16}};
  load_weights_kernel<<<static_cast<unsigned>(std::min(p.n, kMostBlocks)), kCopyThreads, 0, stream>>>(args);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
  const cublasHandle_t blas = cublas_handle(stream, memory.cublas);
  const double one = 1;
  const double minus_one = -1;
  const auto k = static_cast<int>(p.k);
  const auto blocks = static_cast<unsigned>(std::min((p.n + kWarps - 1) / kWarps, kMostBlocks));
  for (std::int64_t begin = 0; begin < p.k;) {
    const std::int64_t width = gptq_block_width(p.k, args.group_width, begin);
    const std::int64_t end = begin + width;
    gptq_columns_kernel<<<blocks, kThreads, 0, stream>>>(args, begin, static_cast<int>(width));
    INFEROMETER_CUDA_CHECK(cudaGetLastError());
    // W behind -= errors U, [n, k - end]; cuBLAS sees all three transposed.
    if (end < p.k)
      INFEROMETER_CUBLAS_CHECK(cublasDgemm(
          blas, CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(p.k - end), static_cast<int>(p.n), static_cast<int>(width),
          &minus_one, memory.h + begin * p.k + end, k, memory.errors, kBlockColumns, &one, memory.w + end, k));
    begin = end;
  }
}

}  // namespace inferometer
