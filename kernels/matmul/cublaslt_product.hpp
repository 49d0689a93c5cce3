// Y = X W^T by cuBLASLt, with the fastest of the algorithms it proposes.
//
// Row-major Y = X W^T is column-major Y^T = (W^T)^T X^T, the product that cuBLASLt computes with its first operand
// transposed: the one layout that its int8 kernels take. Of a W stored [k, n] that operand is not transposed.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "harness/operator/variant.hpp"

namespace inferometer {

struct CublasLtTypes {
  cudaDataType_t operands;  // of X and W
  cudaDataType_t result;    // of Y
  cublasComputeType_t compute;
  cudaDataType_t scale;  // CUDA_R_32F or CUDA_R_32I
};

inline constexpr std::int64_t kCublasLtMaxSize = (std::int64_t{1} << 31) - 1;  // of m, n and k

// Dense row-major x [m, k], w [n, k] or [k, n], y [m, n] in device memory.
struct CublasLtOperands {
  const void* x = nullptr;
  const void* w = nullptr;
  void* y = nullptr;
};

class CublasLtProduct {
 public:
  CublasLtProduct(const CublasLtTypes& types, std::int64_t m, std::int64_t n, std::int64_t k, bool w_is_kn = false);

  // Asks for the algorithms that the workspace allows, up to 32, times them on these operands, which take turns, so
  // that a moving clock favours none, and keeps the fastest. Writes Y. Throws std::runtime_error, beginning with `who`,
  // when there is none.
  void choose_algorithm(const CublasLtOperands& operands, const Launch& launch, const std::string& who);

  // Enqueues the product; choose_algorithm came before.
  void launch(const CublasLtOperands& operands, const Launch& launch) const {
    launch_algorithm(algorithm_, operands, launch);
  }

 private:
  struct Destroy {
    void operator()(cublasLtMatmulDesc_t made) const { cublasLtMatmulDescDestroy(made); }
    void operator()(cublasLtMatrixLayout_t made) const { cublasLtMatrixLayoutDestroy(made); }
  };
  template <class Pointer>
  using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy>;
  using Layout = Owned<cublasLtMatrixLayout_t>;

  static Layout make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns);
  void launch_algorithm(const cublasLtMatmulAlgo_t& algorithm, const CublasLtOperands& operands,
                        const Launch& launch) const;

  cudaDataType_t scale_;
  Owned<cublasLtMatmulDesc_t> operation_;
  Layout w_;
  Layout x_;
  Layout y_;
  std::string sizes_;  // for messages
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace inferometer
