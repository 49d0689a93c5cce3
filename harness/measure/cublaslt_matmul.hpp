// A square matrix product by cuBLASLt, with the choice of its algorithm left to the caller. CUDA builds only.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <type_traits>
#include <vector>

#include "harness/measure/gpu_handles.hpp"
#include "harness/operator/variant.hpp"

namespace inferometer {

enum class MatmulKind : std::uint8_t {
  f16,   // in and out, f32 accumulation
  bf16,  // in and out, f32 accumulation
  int8,  // in, int32 out
};

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

// C = A^T B, all of edge `n`. `operands`: two n x n matrices of the kind's input type, one after the other; not owned.
// Throws OutOfMemory, and std::runtime_error with the name of a call of the library that failed.
class CublasLtMatmul {
 public:
  CublasLtMatmul(MatmulKind kind, int n, const void* operands);

  // The library's algorithms for this product here, its first choice first; none when it has none for this GPU.
  std::vector<cublasLtMatmulAlgo_t> proposals(int most) const;

  void queue(const cublasLtMatmulAlgo_t& algorithm, Stream stream) const;

 private:
  MatmulKind kind_;
  const void* a_;
  const void* b_;
  CudaMemory c_;
  CudaMemory workspace_;
  CublasUnique<cublasLtHandle_t> handle_;
  CublasUnique<cublasLtMatmulDesc_t> matmul_;
  CublasUnique<cublasLtMatrixLayout_t> in_layout_;
  CublasUnique<cublasLtMatrixLayout_t> out_layout_;
};

}  // namespace inferometer
