// matmul / cublas.int8: int8 activations times int8 weights by cuBLASLt's integer kernels, three launches:
//
//   X to codes and scales by token      quantize_activations.cu
//   sums [m, n] i32 = codes W^T         cuBLASLt, the fastest of the algorithms it proposes
//   Y = sums * scale of token * scale of output feature, rounded once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/common/cublas.hpp"
#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/cublaslt_product.hpp"
#include "kernels/matmul/quantize_activations.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {
namespace {

constexpr int kThreads = 256;
constexpr int kElems = 4;  // a thread's: 16 bytes of sums
// What PyTorch's int8 product asks on behalf of cuBLASLt. Fewer rows get idle ones beside them.
constexpr std::int64_t kLeastTokens = 32;
constexpr std::int64_t kFeatures = 8;  // n is a multiple of it

// `sums` and `y`: [m, n]; `vectors`: n / kElems. A block takes part of a row; rows along x, of which there may be more.
template <class T>
__global__ void __launch_bounds__(kThreads)
    scale_sums_kernel(const int4* __restrict__ sums, const float* __restrict__ token_scales,
                      const uint2* __restrict__ weight_scales, std::int64_t vectors, uint2* __restrict__ y) {
  const std::int64_t vector = std::int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (vector >= vectors) return;
  const std::int64_t at = blockIdx.x * vectors + vector;
  const int4 sum = sums[at];
  const float token = token_scales[blockIdx.x];
  const uint2 pairs = weight_scales[vector];
  const float2 first = unpack_pair<T>(pairs.x);
  const float2 second = unpack_pair<T>(pairs.y);
  y[at] = {
      pack_pair<T>(static_cast<float>(sum.x) * (token * first.x), static_cast<float>(sum.y) * (token * first.y)),
      pack_pair<T>(static_cast<float>(sum.z) * (token * second.x), static_cast<float>(sum.w) * (token * second.y))};
}

// The problem as cuBLASLt gets it. Codes of idle rows are those that the workspace held; nobody reads their sums.
MatmulProblem with_idle_rows(const MatmulProblem& p) {
  MatmulProblem padded = p;
  padded.m = std::max(p.m, kLeastTokens);
  return padded;
}

// What the workspace holds: cuBLASLt's own, the sums, the quantised activations.
struct Workspace {
  std::span<std::byte> cublas;
  std::int32_t* sums;
  QuantizedActivations activations;
};

std::size_t sum_bytes(const MatmulProblem& padded) {
  constexpr std::size_t kAlignment = 256;
  const std::size_t bytes = static_cast<std::size_t>(padded.m * padded.n) * sizeof(std::int32_t);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t workspace_bytes(const MatmulProblem& p) {
  const MatmulProblem padded = with_idle_rows(p);
  return kCublasWorkspaceBytes + sum_bytes(padded) + quantized_activation_bytes(padded);
}

Workspace place(const MatmulProblem& p, const Launch& launch) {
  const MatmulProblem padded = with_idle_rows(p);
  std::byte* const sums = launch.workspace.data() + kCublasWorkspaceBytes;
  return {.cublas = launch.workspace.first(kCublasWorkspaceBytes),
          .sums = reinterpret_cast<std::int32_t*>(sums),
          .activations = place_activations(padded, sums + sum_bytes(padded))};
}

Launch with_workspace(const Launch& launch, std::span<std::byte> workspace) {
  Launch own = launch;
  own.workspace = workspace;
  return own;
}

std::optional<std::string> unsupported(const MatmulProblem& p) {
  if (p.activation_bits != 8) return "activation_bits must be 8, got " + std::to_string(p.activation_bits);
  if (p.k % kActivationElems != 0) return "k must be a multiple of 16, got " + std::to_string(p.k);
  if (p.n % kFeatures != 0) return "n must be a multiple of 8, got " + std::to_string(p.n);
  constexpr std::int64_t kMostColumns = std::int64_t{65535} * kThreads * kElems;  // of a grid's y dimension
  if (p.n > kMostColumns) return "n must be at most " + std::to_string(kMostColumns) + ", got " + std::to_string(p.n);
  if (p.m > kCublasLtMaxSize)
    return "m must be at most " + std::to_string(kCublasLtMaxSize) + ", got " + std::to_string(p.m);
  return std::nullopt;
}

std::shared_ptr<void> prepare(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch, Allocator&) {
  const Workspace memory = place(p, launch);
  auto product = std::make_shared<CublasLtProduct>(
      CublasLtTypes{.operands = CUDA_R_8I, .result = CUDA_R_32I, .compute = CUBLAS_COMPUTE_32I, .scale = CUDA_R_32I},
      with_idle_rows(p).m, p.n, p.k);
  launch_quantize_activations(p, t.x, memory.activations, launch.stream);  // algorithms are timed on what they will get
  product->choose_algorithm({.x = memory.activations.codes, .w = t.w, .y = memory.sums},
                            with_workspace(launch, memory.cublas), "matmul/cublas.int8");
  return product;
}

void run(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch) {
  const Workspace memory = place(p, launch);
  launch_quantize_activations(p, t.x, memory.activations, launch.stream);
  static_cast<const CublasLtProduct*>(launch.state)
      ->launch({.x = memory.activations.codes, .w = t.w, .y = memory.sums}, with_workspace(launch, memory.cublas));
  const std::int64_t vectors = p.n / kElems;
  const dim3 blocks(static_cast<unsigned>(p.m), static_cast<unsigned>((vectors + kThreads - 1) / kThreads));
  with_half_type(p.dtype, [&]<class T>() {
    scale_sums_kernel<T><<<blocks, kThreads, 0, launch.stream>>>(
        reinterpret_cast<const int4*>(memory.sums), memory.activations.scales, static_cast<const uint2*>(t.scales),
        vectors, static_cast<uint2*>(t.y));
    INFEROMETER_CUDA_CHECK(cudaGetLastError());
  });
}

const RegisterVariant<Matmul> registered{{
    .name = "cublas.int8",
    .summary = "activations to int8, cuBLASLt's fastest int8 product, then the scales",
    .min_sm = 80,
    .unsupported = &unsupported,
    .workspace_bytes = &workspace_bytes,
    .prepare = &prepare,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
