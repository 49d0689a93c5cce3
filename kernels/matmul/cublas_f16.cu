// matmul / cublas.f16: cuBLASLt, f16 and bf16, f32 accumulation: the vendor's matmul, as strong as it gets here.
//
// cuBLASLt proposes algorithms; `prepare` times them on the row's own tensors and keeps the fastest.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/common/cublas.hpp"
#include "kernels/matmul/cublaslt_product.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {
namespace {

std::optional<std::string> unsupported(const MatmulProblem& p) {
  if (p.bits != 16) return "bits must be 16, got " + std::to_string(p.bits);
  if (p.dtype != Dtype::f16 && p.dtype != Dtype::bf16)
    return "dtype must be f16 or bf16, got " + std::string(dtype_name(p.dtype));
  for (const auto& [name, size] : {std::pair("m", p.m), std::pair("n", p.n), std::pair("k", p.k)})
    if (size > kCublasLtMaxSize)
      return std::string(name) + " must be at most " + std::to_string(kCublasLtMaxSize) + ", got " +
             std::to_string(size);
  return std::nullopt;
}

std::size_t workspace_bytes(const MatmulProblem&) { return kCublasWorkspaceBytes; }

std::shared_ptr<void> prepare(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch, Allocator&) {
  const cudaDataType_t type = cuda_data_type(p.dtype);
  auto product = std::make_shared<CublasLtProduct>(
      CublasLtTypes{.operands = type, .result = type, .compute = CUBLAS_COMPUTE_32F, .scale = CUDA_R_32F}, p.m, p.n,
      p.k, p.w_transposed);
  product->choose_algorithm({.x = t.x, .w = t.w, .y = t.y}, launch, "matmul/cublas.f16");
  // Timing wrote Y: poison it again, so that a check still sees what `run` writes.
  INFEROMETER_CUDA_CHECK(
      cudaMemsetAsync(t.y, 0xff, static_cast<std::size_t>(p.m * p.n) * dtype_bytes(p.dtype), launch.stream));
  return product;
}

void run(const MatmulProblem&, const MatmulTensors& t, const Launch& launch) {
  static_cast<const CublasLtProduct*>(launch.state)->launch({.x = t.x, .w = t.w, .y = t.y}, launch);
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
