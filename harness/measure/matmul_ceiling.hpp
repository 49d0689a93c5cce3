// The rate of the vendor's matrix product, as a ceiling. CUDA builds only.
#pragma once

#include <optional>

#include "harness/measure/cublaslt_matmul.hpp"

namespace inferometer {

// Seconds that cuBLASLt needs for the product of two matrices of edge `n`, laid out in `operands` as CublasLtMatmul
// takes them: the fastest pass of the best of its algorithms on a rested card. At most 0.3 s on an H200 with n = 8192.
// Absent when the library has no algorithm for this kind here.
std::optional<double> fastest_matmul_seconds(MatmulKind kind, int n, const void* operands, Stream stream);

}  // namespace inferometer
