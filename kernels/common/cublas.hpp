// cuBLAS and cuBLASLt: calls checked where they stand, and one handle per process and device.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "harness/operator/dtype.hpp"
#include "harness/operator/variant.hpp"

namespace inferometer {

class CublasError : public std::runtime_error {
 public:
  CublasError(const std::string& message, cublasStatus_t status) : std::runtime_error(message), status_(status) {}
  cublasStatus_t status() const { return status_; }

 private:
  cublasStatus_t status_;
};

// Throws CublasError naming place, call and status.
void check_cublas(cublasStatus_t status, const char* call, const char* file, int line);

// What NVIDIA recommends for Hopper (cuBLAS manual, "cublasSetWorkspace"); with less, its split-K kernels drop out.
inline constexpr std::size_t kCublasWorkspaceBytes = std::size_t{32} << 20;

// The current device's handles, made at first use and kept until the process ends. They hold settings, so one host
// thread at a time uses them; work they have queued on different streams runs concurrently.

// Set to `stream` and `workspace` (device memory, 256-byte aligned), both until the next call: cuBLAS then allocates
// nothing of its own. Sums are kept in f32 also between the parts of a split-K product.
cublasHandle_t cublas_handle(Stream stream, std::span<std::byte> workspace);

cublasLtHandle_t cublaslt_handle();

// What cuBLAS calls a dtype.
constexpr cudaDataType_t cuda_data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return CUDA_R_16F;
    case Dtype::bf16: return CUDA_R_16BF;
    case Dtype::f32: return CUDA_R_32F;
    case Dtype::i32: return CUDA_R_32I;
    case Dtype::u8: return CUDA_R_8U;
  }
  return CUDA_R_32F;
}

}  // namespace inferometer

#define INFEROMETER_CUBLAS_CHECK(call) ::inferometer::check_cublas((call), #call, __FILE__, __LINE__)
