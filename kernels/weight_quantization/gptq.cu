// weight_quantization / cuda.gptq: GPTQ with the inputs in their given order, all of it on the device, in double
// precision: the codes of cpu.gptq, but where a weight lies so close to the middle between two grid points that the
// order of a sum decides.
//
//   H = X^T X / tokens, damped           hessian.cu         cuBLAS
//   U with H^-1 = U^T U                  inverse_factor.cu  cuBLAS, tiles of 64 on the diagonal by one block of threads
//   codes, 64 columns after the other    gptq_columns.cu    a warp a row; what 64 columns move in those behind: cuBLAS
//   figures of the result                below
//
// A launch waits for nothing: which damping makes H positive definite is found out by `prepare`.
// After: Frantar, Ashkboos, Hoefler, Alistarh, "GPTQ", ICLR 2023, algorithm 1 (reference/weight_quantization/gptq.hpp).
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/ptx/global_timer.cuh"
#include "kernels/weight_quantization/gptq_columns.hpp"
#include "kernels/weight_quantization/gptq_workspace.hpp"
#include "kernels/weight_quantization/hessian.hpp"
#include "kernels/weight_quantization/inverse_factor.hpp"
#include "reference/weight_quantization/problem.hpp"

namespace inferometer {
namespace {

using Problem = WeightQuantizationProblem;
using Tensors = WeightQuantizationTensors;

constexpr int kFinishThreads = 1024;
constexpr double kNsPerSecond = 1e9;

struct State {
  double damping;  // the problem's, or a greater one where H is not positive definite with that
};

__global__ void stamp_kernel(std::uint64_t* stamp) { *stamp = global_timer_ns(); }

struct FinishArgs {
  GptqWorkspace memory;
  std::int32_t* result;
  std::int64_t n;
  std::int64_t k;
  std::int64_t groups;
  std::int64_t group_width;
  std::int64_t group_index;  // where they begin in the result
  std::int64_t input_scales;
  double damping;
  bool damping_raised;
};

__device__ void put_double(std::int32_t* to, double value) {
  const auto bits = static_cast<std::uint64_t>(__double_as_longlong(value));
  for (int limb = 0; limb < kResultLimbs; ++limb)
    to[limb] = static_cast<std::int32_t>(bits >> (limb * kResultLimbBits) & ((1U << kResultLimbBits) - 1));
}

// All of the result but codes, scales and zeros. One block: sums of rows in an order that depends on n alone.
__global__ void __launch_bounds__(kFinishThreads) finish_kernel(const FinishArgs a) {
  __shared__ double sums[kFinishThreads];
  const GptqStatus& status = *a.memory.status;
  // Of tr(D (H + damping) D^T), the sum of all e_i^2, the damping's own share is not the outputs'.
  const double own = a.damping * status.mean;
  double sum = 0;
  for (std::int64_t row = threadIdx.x; row < a.n; row += kFinishThreads)
    sum += a.memory.row_squares[row] - own * a.memory.row_changes[row];
  sums[threadIdx.x] = sum;
  for (int half = kFinishThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  for (std::int64_t i = threadIdx.x; i < a.k; i += kFinishThreads) {
    a.result[a.group_index + i] = static_cast<std::int32_t>(i / a.group_width);
    a.result[a.input_scales + i] = __float_as_int(1.0F);
  }
  if (threadIdx.x != 0) return;
  // Without a live input nothing was factorised: weights are rounded to nearest, no output changes, and a warning says
  // so. A factor that failed after all leaves no objective, which no audit accepts.
  const double none = nan("");
  const bool rounded = status.live_inputs == 0;
  const double objective = rounded ? 0 : status.failed != 0 ? none : fmax(sums[0], 0.0);
  const std::uint64_t now = global_timer_ns();
  a.result[ResultLayout::kShape] = static_cast<std::int32_t>(a.n);
  a.result[ResultLayout::kShape + 1] = static_cast<std::int32_t>(a.k);
  a.result[ResultLayout::kShape + 2] = static_cast<std::int32_t>(a.groups);
  a.result[ResultLayout::kHasGroupIndex] = 0;
  a.result[ResultLayout::kHasInputScales] = 0;
  a.result[ResultLayout::kWarnings] = rounded || a.damping_raised ? 1 : 0;
  put_double(a.result + ResultLayout::kObjective, objective);
  put_double(a.result + ResultLayout::kDamping, rounded ? none : a.damping);
  put_double(a.result + ResultLayout::kSeconds, static_cast<double>(now - status.calibrated) / kNsPerSecond);
  put_double(a.result + ResultLayout::kCalibrationSeconds,
             static_cast<double>(status.calibrated - status.begun) / kNsPerSecond);
}

void launch_stamp(std::uint64_t* stamp, Stream stream) {
  stamp_kernel<<<1, 1, 0, stream>>>(stamp);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

void launch_factor(const Problem& p, const GptqWorkspace& memory, double damping, Stream stream) {
  launch_damping(p, damping, memory, stream);
  launch_inverse_factor(p, memory, stream);
}

std::size_t workspace_bytes(const Problem& p) { return gptq_workspace_bytes(p); }

std::shared_ptr<void> prepare(const Problem& p, const Tensors& t, const Launch& launch, Allocator&) {
  const GptqWorkspace memory = place_gptq_workspace(p, launch.workspace);
  const auto factorizes = [&](double damping) {
    launch_hessian(p, t.x, memory, launch.stream);
    launch_factor(p, memory, damping, launch.stream);
    GptqStatus status{};
    INFEROMETER_CUDA_CHECK(
        cudaMemcpyAsync(&status, memory.status, sizeof(status), cudaMemcpyDeviceToHost, launch.stream));
    INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch.stream));
    return status.failed == 0;
  };
  if (factorizes(p.damping)) return std::make_shared<State>(State{.damping = p.damping});
  for (const double retry : kGptqDampingRetries)
    if (retry > p.damping && factorizes(retry)) return std::make_shared<State>(State{.damping = retry});
  throw std::runtime_error(
      "weight_quantization/cuda.gptq: H is not positive definite, even with a damping of 1; cpu.gptq rounds such "
      "weights to nearest");
}

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  const GptqWorkspace memory = place_gptq_workspace(p, launch.workspace);
  const double damping = static_cast<const State*>(launch.state)->damping;
  launch_stamp(&memory.status->begun, launch.stream);
  launch_hessian(p, t.x, memory, launch.stream);
  launch_stamp(&memory.status->calibrated, launch.stream);
  launch_factor(p, memory, damping, launch.stream);
  launch_gptq_columns(p, t, memory, launch.stream);
  const ResultLayout layout(p);
  finish_kernel<<<1, kFinishThreads, 0, launch.stream>>>({.memory = memory,
                                                          .result = t.result,
                                                          .n = p.n,
                                                          .k = p.k,
                                                          .groups = p.groups(),
                                                          .group_width = p.group_size == 0 ? p.k : p.group_size,
                                                          .group_index = layout.group_index,
                                                          .input_scales = layout.input_scales,
                                                          .damping = damping,
                                                          .damping_raised = damping > p.damping});
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

const RegisterVariant<WeightQuantization> registered{{
    .name = "cuda.gptq",
    .summary = "GPTQ, inputs in their given order; double precision on the GPU, products by cuBLAS",
    .min_sm = 80,
    .workspace_bytes = &workspace_bytes,
    .prepare = &prepare,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
