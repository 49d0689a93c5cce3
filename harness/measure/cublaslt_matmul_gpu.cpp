#include <stdexcept>
#include <string>

#include "harness/measure/cublaslt_matmul.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

struct Types {
  cudaDataType_t in;
  cudaDataType_t out;
  cudaDataType_t scale;
  cublasComputeType_t compute;
  std::size_t in_bytes;
  std::size_t out_bytes;
};

Types types_of(MatmulKind kind) {
  switch (kind) {
    case MatmulKind::f16: return {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, 2};
    case MatmulKind::bf16: return {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2, 2};
    case MatmulKind::int8: break;
  }
  return {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 1, 4};
}

std::size_t square(int n) { return static_cast<std::size_t>(n) * static_cast<std::size_t>(n); }

void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("matmul ceiling: ") + call + " failed: " + cublasLtGetStatusName(status) + " (" +
                           cublasLtGetStatusString(status) + ")");
}

CublasUnique<cublasLtHandle_t> make_handle() {
  cublasLtHandle_t handle = nullptr;
  check_cublas(cublasLtCreate(&handle), "cublasLtCreate");
  return CublasUnique<cublasLtHandle_t>(handle);
}

CublasUnique<cublasLtMatmulDesc_t> make_matmul(const Types& types) {
  cublasLtMatmulDesc_t raw = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&raw, types.compute, types.scale), "cublasLtMatmulDescCreate");
  CublasUnique<cublasLtMatmulDesc_t> matmul(raw);
  const cublasOperation_t transposed = CUBLAS_OP_T;  // the one layout that int8 tensor cores take
  check_cublas(cublasLtMatmulDescSetAttribute(raw, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
               "cublasLtMatmulDescSetAttribute");
  return matmul;
}

CublasUnique<cublasLtMatrixLayout_t> make_layout(cudaDataType_t type, int n) {
  cublasLtMatrixLayout_t layout = nullptr;
  const auto edge = static_cast<std::uint64_t>(n);
  check_cublas(cublasLtMatrixLayoutCreate(&layout, type, edge, edge, n), "cublasLtMatrixLayoutCreate");
  return CublasUnique<cublasLtMatrixLayout_t>(layout);
}

CublasUnique<cublasLtMatmulPreference_t> make_preference() {
  cublasLtMatmulPreference_t raw = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
  CublasUnique<cublasLtMatmulPreference_t> preference(raw);
  check_cublas(cublasLtMatmulPreferenceSetAttribute(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspaceBytes,
                                                    sizeof kWorkspaceBytes),
               "cublasLtMatmulPreferenceSetAttribute");
  return preference;
}

}  // namespace

CublasLtMatmul::CublasLtMatmul(MatmulKind kind, int n, const void* operands)
    : kind_(kind),
      a_(operands),
      b_(static_cast<const std::byte*>(operands) + square(n) * types_of(kind).in_bytes),
      c_(make_device_memory(square(n) * types_of(kind).out_bytes)),
      workspace_(make_device_memory(kWorkspaceBytes)),
      handle_(make_handle()),
      matmul_(make_matmul(types_of(kind))),
      in_layout_(make_layout(types_of(kind).in, n)),
      out_layout_(make_layout(types_of(kind).out, n)) {}

std::vector<cublasLtMatmulAlgo_t> CublasLtMatmul::proposals(int most) const {
  const CublasUnique<cublasLtMatmulPreference_t> preference = make_preference();
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_.get(), matmul_.get(), in_layout_.get(),
                                                               in_layout_.get(), out_layout_.get(), out_layout_.get(),
                                                               preference.get(), most, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
  results.resize(static_cast<std::size_t>(found));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const auto& result : results)
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  return algorithms;
}

void CublasLtMatmul::queue(const cublasLtMatmulAlgo_t& algorithm, Stream stream) const {
  const float one_f32 = 1;
  const std::int32_t one_i32 = 1;
  const std::int32_t zero = 0;  // the same bits in f32
  const void* const alpha = kind_ == MatmulKind::int8 ? static_cast<const void*>(&one_i32) : &one_f32;
  check_cublas(cublasLtMatmul(handle_.get(), matmul_.get(), alpha, a_, in_layout_.get(), b_, in_layout_.get(), &zero,
                              c_.get(), out_layout_.get(), c_.get(), out_layout_.get(), &algorithm, workspace_.get(),
                              kWorkspaceBytes, stream),
               "cublasLtMatmul");
}

}  // namespace inferometer
