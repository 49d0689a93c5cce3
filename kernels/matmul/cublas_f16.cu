// matmul / cublas.f16: cuBLASLt, f16 and bf16, f32 accumulation: the vendor's matmul, as strong as it gets here.
//
// cuBLASLt proposes algorithms; `prepare` times them on the row's own tensors and keeps the fastest.
// Row-major Y = X W^T is column-major Y^T = (W^T)^T X^T, the product that cuBLASLt computes with its first operand
// transposed.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/common/cublas.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {
namespace {

constexpr int kMaxAlgorithms = 16;
constexpr int kRounds = 5;               // of one timed launch of each algorithm
constexpr float kClearlyBetter = 0.98F;  // a later proposal must be this much faster, or noise would choose
constexpr std::int64_t kMaxSize = (std::int64_t{1} << 31) - 1;

struct Destroy {
  void operator()(cublasLtMatmulDesc_t made) const { cublasLtMatmulDescDestroy(made); }
  void operator()(cublasLtMatrixLayout_t made) const { cublasLtMatrixLayoutDestroy(made); }
  void operator()(cublasLtMatmulPreference_t made) const { cublasLtMatmulPreferenceDestroy(made); }
  void operator()(cudaEvent_t made) const { cudaEventDestroy(made); }
};
template <class Pointer>
using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy>;
using Operation = Owned<cublasLtMatmulDesc_t>;
using Layout = Owned<cublasLtMatrixLayout_t>;
using Preference = Owned<cublasLtMatmulPreference_t>;
using Event = Owned<cudaEvent_t>;

struct State {
  Operation operation;
  Layout w;
  Layout x;
  Layout y;
  cublasLtMatmulAlgo_t algorithm{};
};

Operation make_operation() {
  cublasLtMatmulDesc_t made = nullptr;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  Operation operation(made);
  const cublasOperation_t transpose = CUBLAS_OP_T;
  INFEROMETER_CUBLAS_CHECK(
      cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof(transpose)));
  return operation;
}

// A dense row-major [rows, columns] tensor, as the column-major matrix cuBLASLt sees.
Layout make_layout(Dtype dtype, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&made, cuda_data_type(dtype), static_cast<std::uint64_t>(columns),
                                                      static_cast<std::uint64_t>(rows), columns));
  return Layout(made);
}

Event make_event() {
  cudaEvent_t made = nullptr;
  INFEROMETER_CUDA_CHECK(cudaEventCreate(&made));
  return Event(made);
}

// What cuBLASLt proposes, the best first by its own estimate.
struct Proposals {
  std::array<cublasLtMatmulHeuristicResult_t, kMaxAlgorithms> results{};
  int count = 0;
};

Proposals propose_algorithms(const State& state, std::size_t workspace_bytes) {
  cublasLtMatmulPreference_t made = nullptr;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&made));
  const Preference preference(made);
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                                &workspace_bytes, sizeof(workspace_bytes)));
  // Parts of a split-K product are added in f32: in the output's type they could overflow.
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                                &reductions, sizeof(reductions)));
  Proposals proposals;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmulAlgoGetHeuristic(cublaslt_handle(), state.operation.get(), state.w.get(),
                                                          state.x.get(), state.y.get(), state.y.get(), made,
                                                          kMaxAlgorithms, proposals.results.data(), &proposals.count));
  const auto unusable = std::stable_partition(
      proposals.results.begin(), proposals.results.begin() + proposals.count,
      [](const cublasLtMatmulHeuristicResult_t& result) { return result.state == CUBLAS_STATUS_SUCCESS; });
  proposals.count = static_cast<int>(unusable - proposals.results.begin());
  return proposals;
}

void launch_algorithm(const State& state, const cublasLtMatmulAlgo_t& algorithm, const MatmulTensors& t,
                      const Launch& launch) {
  const float one = 1.0F;
  const float zero = 0.0F;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmul(cublaslt_handle(), state.operation.get(), &one, t.w, state.w.get(), t.x,
                                          state.x.get(), &zero, t.y, state.y.get(), t.y, state.y.get(), &algorithm,
                                          launch.workspace.data(), launch.workspace.size(), launch.stream));
}

struct TimedLaunch {
  Event begin;
  Event end;
};

// The fastest proposal by the median of its launches; they take turns, so that a moving clock favours none.
cublasLtMatmulAlgo_t fastest_algorithm(const State& state, const Proposals& proposals, const MatmulTensors& t,
                                       const Launch& launch) {
  std::array<std::array<TimedLaunch, kRounds>, kMaxAlgorithms> timed;
  for (int i = 0; i < proposals.count; ++i) launch_algorithm(state, proposals.results[i].algo, t, launch);  // loads it
  for (int round = 0; round < kRounds; ++round)
    for (int i = 0; i < proposals.count; ++i) {
      timed[i][round] = {.begin = make_event(), .end = make_event()};
      INFEROMETER_CUDA_CHECK(cudaEventRecord(timed[i][round].begin.get(), launch.stream));
      launch_algorithm(state, proposals.results[i].algo, t, launch);
      INFEROMETER_CUDA_CHECK(cudaEventRecord(timed[i][round].end.get(), launch.stream));
    }
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch.stream));

  int best = 0;
  float best_ms = 0;
  for (int i = 0; i < proposals.count; ++i) {
    std::array<float, kRounds> ms{};
    for (int round = 0; round < kRounds; ++round)
      INFEROMETER_CUDA_CHECK(cudaEventElapsedTime(&ms[round], timed[i][round].begin.get(), timed[i][round].end.get()));
    std::nth_element(ms.begin(), ms.begin() + kRounds / 2, ms.end());
    if (i > 0 && ms[kRounds / 2] > best_ms * kClearlyBetter) continue;
    best = i;
    best_ms = ms[kRounds / 2];
  }
  return proposals.results[best].algo;
}

std::optional<std::string> unsupported(const MatmulProblem& p) {
  if (p.bits != 16) return "bits must be 16, got " + std::to_string(p.bits);
  if (p.dtype != Dtype::f16 && p.dtype != Dtype::bf16)
    return "dtype must be f16 or bf16, got " + std::string(dtype_name(p.dtype));
  for (const auto& [name, size] : {std::pair("m", p.m), std::pair("n", p.n), std::pair("k", p.k)})
    if (size > kMaxSize)
      return std::string(name) + " must be at most " + std::to_string(kMaxSize) + ", got " + std::to_string(size);
  return std::nullopt;
}

std::size_t workspace_bytes(const MatmulProblem&) { return kCublasWorkspaceBytes; }

std::shared_ptr<void> prepare(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch, Allocator&) {
  auto state = std::make_shared<State>();
  state->operation = make_operation();
  state->w = make_layout(p.dtype, p.n, p.k);
  state->x = make_layout(p.dtype, p.m, p.k);
  state->y = make_layout(p.dtype, p.m, p.n);
  const Proposals proposals = propose_algorithms(*state, launch.workspace.size());
  if (proposals.count == 0)
    throw std::runtime_error("matmul/cublas.f16: cuBLASLt has no algorithm for m=" + std::to_string(p.m) +
                             " n=" + std::to_string(p.n) + " k=" + std::to_string(p.k));
  state->algorithm = fastest_algorithm(*state, proposals, t, launch);
  // Timing wrote Y: poison it again, so that a check still sees what `run` writes.
  INFEROMETER_CUDA_CHECK(
      cudaMemsetAsync(t.y, 0xff, static_cast<std::size_t>(p.m * p.n) * dtype_bytes(p.dtype), launch.stream));
  return state;
}

void run(const MatmulProblem&, const MatmulTensors& t, const Launch& launch) {
  const State& state = *static_cast<const State*>(launch.state);
  launch_algorithm(state, state.algorithm, t, launch);
}

const RegisterVariant<Matmul> registered{{
    .name = "cublas.f16",
    .summary = "cuBLASLt, the fastest of the algorithms it proposes",
    .min_sm = 80,
    .unsupported = &unsupported,
    .workspace_bytes = &workspace_bytes,
    .prepare = &prepare,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
