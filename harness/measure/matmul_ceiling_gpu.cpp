#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "harness/measure/matmul_ceiling.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("matmul ceiling: ") + call + " failed: " + cublasLtGetStatusName(status) + " (" +
                           cublasLtGetStatusString(status) + ")");
}

// One deleter for cuBLASLt's objects: a destructor that fails has leaked, which is all there is to say.
struct CublasDelete {
  static void report(cublasStatus_t status) noexcept {
    if (status != CUBLAS_STATUS_SUCCESS)
      std::fprintf(stderr, "matmul ceiling: destroying a cuBLASLt object failed: %s\n", cublasLtGetStatusName(status));
  }
  void operator()(cublasLtHandle_t handle) const noexcept { report(cublasLtDestroy(handle)); }
  void operator()(cublasLtMatmulDesc_t matmul) const noexcept { report(cublasLtMatmulDescDestroy(matmul)); }
  void operator()(cublasLtMatrixLayout_t layout) const noexcept { report(cublasLtMatrixLayoutDestroy(layout)); }
  void operator()(cublasLtMatmulPreference_t preference) const noexcept {
    report(cublasLtMatmulPreferenceDestroy(preference));
  }
};

template <class Handle>
using CublasUnique = std::unique_ptr<std::remove_pointer_t<Handle>, CublasDelete>;
using Layout = CublasUnique<cublasLtMatrixLayout_t>;

Layout square_layout(cudaDataType_t type, int n) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(
      cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(n), n),
      "cublasLtMatrixLayoutCreate");
  return Layout(layout);
}

}  // namespace

double fastest_pass_seconds(const std::function<void()>& queue_pass, Stream stream) {
  constexpr int kPasses = 8;
  std::array<CudaEvent, kPasses + 1> events;
  for (CudaEvent& event : events) event = make_event();
  queue_pass();
  for (int i = 0; i < kPasses; ++i) {
    INFEROMETER_CUDA_CHECK(cudaEventRecord(events[i].get(), stream));
    queue_pass();
  }
  INFEROMETER_CUDA_CHECK(cudaEventRecord(events[kPasses].get(), stream));
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream));
  double best_ns = elapsed_ns(events[0], events[1]);
  for (int i = 1; i < kPasses; ++i) best_ns = std::min(best_ns, elapsed_ns(events[i], events[i + 1]));
  return best_ns * 1e-9;
}

std::optional<double> fastest_matmul_seconds(MatmulKind kind, int n, const void* operands, Stream stream) {
  const bool is_f16 = kind == MatmulKind::f16;
  const cudaDataType_t in = is_f16 ? CUDA_R_16F : CUDA_R_8I;
  const cudaDataType_t out = is_f16 ? CUDA_R_16F : CUDA_R_32I;
  const cudaDataType_t scale = is_f16 ? CUDA_R_32F : CUDA_R_32I;
  const std::size_t elements = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  const auto* const a = static_cast<const std::byte*>(operands);
  const std::byte* const b = a + elements * (is_f16 ? 2 : 1);
  const CudaMemory c = make_device_memory(elements * (is_f16 ? 2 : 4));
  const CudaMemory workspace = make_device_memory(kWorkspaceBytes);

  cublasLtHandle_t raw_handle = nullptr;
  check_cublas(cublasLtCreate(&raw_handle), "cublasLtCreate");
  const CublasUnique<cublasLtHandle_t> handle(raw_handle);
  cublasLtMatmulDesc_t raw_matmul = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&raw_matmul, is_f16 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32I, scale),
               "cublasLtMatmulDescCreate");
  const CublasUnique<cublasLtMatmulDesc_t> matmul(raw_matmul);
  const cublasOperation_t transposed = CUBLAS_OP_T;  // the one layout that int8 tensor cores take
  check_cublas(cublasLtMatmulDescSetAttribute(raw_matmul, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
               "cublasLtMatmulDescSetAttribute");
  const Layout in_layout = square_layout(in, n);
  const Layout out_layout = square_layout(out, n);
  cublasLtMatmulPreference_t raw_preference = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&raw_preference), "cublasLtMatmulPreferenceCreate");
  const CublasUnique<cublasLtMatmulPreference_t> preference(raw_preference);
  check_cublas(cublasLtMatmulPreferenceSetAttribute(raw_preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &kWorkspaceBytes, sizeof kWorkspaceBytes),
               "cublasLtMatmulPreferenceSetAttribute");

  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(raw_handle, raw_matmul, in_layout.get(), in_layout.get(), out_layout.get(),
                                     out_layout.get(), raw_preference, 1, &best, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) return std::nullopt;
  check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");

  const float one_f32 = 1;
  const float zero_f32 = 0;
  const std::int32_t one_i32 = 1;
  const std::int32_t zero_i32 = 0;
  const void* const alpha = is_f16 ? static_cast<const void*>(&one_f32) : &one_i32;
  const void* const beta = is_f16 ? static_cast<const void*>(&zero_f32) : &zero_i32;
  return fastest_pass_seconds(
      [&] {
        check_cublas(cublasLtMatmul(raw_handle, raw_matmul, alpha, a, in_layout.get(), b, in_layout.get(), beta,
                                    c.get(), out_layout.get(), c.get(), out_layout.get(), &best.algo, workspace.get(),
                                    kWorkspaceBytes, stream),
                     "cublasLtMatmul");
      },
      stream);
}

}  // namespace inferometer
