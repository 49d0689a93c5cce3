// Host code alone; a .cu so that builds without the CUDA Toolkit leave it out.
#include "kernels/common/cublas.hpp"

#include <map>
#include <mutex>

#include "harness/operator/cuda_check.cuh"

namespace inferometer {
namespace {

struct Handles {
  cublasHandle_t blas = nullptr;
  cublasLtHandle_t lt = nullptr;
};

// Never destroyed: when static objects die the CUDA driver may be gone already, and it frees what is left itself.
Handles& current_handles() {
  static auto& by_device = *new std::map<int, Handles>;
  static std::mutex mutex;
  int device = 0;
  INFEROMETER_CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard lock(mutex);
  return by_device[device];
}

}  // namespace

void check_cublas(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CublasError(std::string(file) + ":" + std::to_string(line) + ": " + call +
                        " failed: " + cublasGetStatusName(status) + " (" + cublasGetStatusString(status) + ")",
                    status);
}

cublasHandle_t cublas_handle(Stream stream, std::span<std::byte> workspace) {
  cublasHandle_t& handle = current_handles().blas;
  if (handle == nullptr) {
    INFEROMETER_CUBLAS_CHECK(cublasCreate(&handle));
    constexpr auto kMath =
        static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    INFEROMETER_CUBLAS_CHECK(cublasSetMathMode(handle, kMath));
  }
  INFEROMETER_CUBLAS_CHECK(cublasSetStream(handle, stream));  // first: it puts the workspace back to cuBLAS's own
  INFEROMETER_CUBLAS_CHECK(cublasSetWorkspace(handle, workspace.data(), workspace.size()));
  return handle;
}

cublasLtHandle_t cublaslt_handle() {
  cublasLtHandle_t& handle = current_handles().lt;
  if (handle == nullptr) INFEROMETER_CUBLAS_CHECK(cublasLtCreate(&handle));
  return handle;
}

}  // namespace inferometer
