#include "kernels/matmul/cublaslt_product.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/cublas.hpp"

namespace inferometer {
namespace {

constexpr int kMaxAlgorithms = 32;       // the best by its own estimate; it rarely has more
constexpr int kRounds = 5;               // of one timed launch of each algorithm
constexpr float kClearlyBetter = 0.98F;  // a later proposal must be this much faster, or noise would choose

struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t made) const { cublasLtMatmulPreferenceDestroy(made); }
};
using Preference = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, DestroyPreference>;

Preference make_preference(std::size_t workspace_bytes) {
  cublasLtMatmulPreference_t made = nullptr;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&made));
  Preference preference(made);
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                                &workspace_bytes, sizeof(workspace_bytes)));
  // Parts of a split-K product are added in the type they are computed in: in the output's they could overflow.
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                                &reductions, sizeof(reductions)));
  return preference;
}

struct DestroyEvent {
  void operator()(cudaEvent_t made) const { cudaEventDestroy(made); }
};
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

Event make_event() {
  cudaEvent_t made = nullptr;
  INFEROMETER_CUDA_CHECK(cudaEventCreate(&made));
  return Event(made);
}

struct TimedLaunch {
  Event begin = make_event();
  Event end = make_event();
};

// Index of the fastest by the median of its launches.
template <class LaunchOne>
std::size_t fastest_of(std::size_t count, Stream stream, const LaunchOne& launch_one) {
  std::vector<std::array<TimedLaunch, kRounds>> timed(count);
  for (std::size_t i = 0; i < count; ++i) launch_one(i);  // loads its code
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < count; ++i) {
      INFEROMETER_CUDA_CHECK(cudaEventRecord(timed[i][round].begin.get(), stream));
      launch_one(i);
      INFEROMETER_CUDA_CHECK(cudaEventRecord(timed[i][round].end.get(), stream));
    }
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream));

  std::size_t best = 0;
  float best_ms = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::array<float, kRounds> ms{};
    for (int round = 0; round < kRounds; ++round)
      INFEROMETER_CUDA_CHECK(cudaEventElapsedTime(&ms[round], timed[i][round].begin.get(), timed[i][round].end.get()));
    std::nth_element(ms.begin(), ms.begin() + kRounds / 2, ms.end());
    if (i > 0 && ms[kRounds / 2] > best_ms * kClearlyBetter) continue;
    best = i;
    best_ms = ms[kRounds / 2];
  }
  return best;
}

}  // namespace

// A dense row-major [rows, columns] tensor, as the column-major matrix cuBLASLt sees.
CublasLtProduct::Layout CublasLtProduct::make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(columns),
                                                      static_cast<std::uint64_t>(rows), columns));
  return Layout(made);
}

CublasLtProduct::CublasLtProduct(const CublasLtTypes& types, std::int64_t m, std::int64_t n, std::int64_t k,
                                 bool w_is_kn)
    : scale_(types.scale),
      w_(w_is_kn ? make_layout(types.operands, k, n) : make_layout(types.operands, n, k)),
      x_(make_layout(types.operands, m, k)),
      y_(make_layout(types.result, m, n)),
      sizes_("m=" + std::to_string(m) + " n=" + std::to_string(n) + " k=" + std::to_string(k)) {
  cublasLtMatmulDesc_t made = nullptr;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmulDescCreate(&made, types.compute, types.scale));
  operation_.reset(made);
  const cublasOperation_t transpose = w_is_kn ? CUBLAS_OP_N : CUBLAS_OP_T;
  INFEROMETER_CUBLAS_CHECK(
      cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof(transpose)));
}

void CublasLtProduct::choose_algorithm(const CublasLtOperands& operands, const Launch& launch, const std::string& who) {
  const Preference preference = make_preference(launch.workspace.size());
  std::vector<cublasLtMatmulHeuristicResult_t> proposals(kMaxAlgorithms);
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(cublaslt_handle(), operation_.get(), w_.get(), x_.get(), y_.get(), y_.get(),
                                     preference.get(), kMaxAlgorithms, proposals.data(), &count);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED) INFEROMETER_CUBLAS_CHECK(status);
  proposals.resize(static_cast<std::size_t>(count));
  std::erase_if(proposals, [](const auto& proposal) { return proposal.state != CUBLAS_STATUS_SUCCESS; });
  if (proposals.empty()) throw std::runtime_error(who + ": cuBLASLt has no algorithm for " + sizes_);
  algorithm_ = proposals[fastest_of(proposals.size(), launch.stream, [&](std::size_t i) {
                 launch_algorithm(proposals[i].algo, operands, launch);
               })].algo;
}

void CublasLtProduct::launch_algorithm(const cublasLtMatmulAlgo_t& algorithm, const CublasLtOperands& operands,
                                       const Launch& launch) const {
  const float one_f32 = 1;
  const std::int32_t one_i32 = 1;
  const std::int32_t zero = 0;  // the same bits in f32
  const void* const one = scale_ == CUDA_R_32I ? static_cast<const void*>(&one_i32) : &one_f32;
  INFEROMETER_CUBLAS_CHECK(cublasLtMatmul(cublaslt_handle(), operation_.get(), one, operands.w, w_.get(), operands.x,
                                          x_.get(), &zero, operands.y, y_.get(), operands.y, y_.get(), &algorithm,
                                          launch.workspace.data(), launch.workspace.size(), launch.stream));
}

}  // namespace inferometer
