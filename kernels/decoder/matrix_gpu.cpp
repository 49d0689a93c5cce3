#include "kernels/decoder/matrix_gpu.hpp"

#include <cuda_fp16.h>

#include <string>
#include <utility>

#include "kernels/common/sm90_only.hpp"
#include "kernels/decoder/quantize_weights.hpp"
#include "kernels/matmul/f16_sm90_ends.hpp"
#include "kernels/matmul/weight_only_variant.hpp"
#include "reference/decoder/problem.hpp"

namespace inferometer::decoder {
namespace {

MatmulProblem problem_of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t bits) {
  return {.m = m, .n = n, .k = k, .bits = bits, .group_size = bits == 16 ? 0 : kWeightGroup};
}

Launch launch_of(const std::shared_ptr<void>& state, Stream stream) {
  Launch launch;
  launch.stream = stream;
  launch.state = state.get();
  return launch;
}

}  // namespace

std::int64_t Matrix::bytes() const {
  return bits == 16 ? n * k * 2 : static_cast<std::int64_t>(packed_weights(weights).size());
}

MatrixProducts::MatrixProducts(Stream stream, Allocator& allocator)
    : stream_(stream), allocator_(allocator), on_sm90_(on_sm90()) {}

MatrixProducts::Key MatrixProducts::key_of(const Matrix& matrix, std::int64_t m) {
  return {matrix.bits == 16 ? nullptr : matrix.weights.get(), matrix.n, matrix.k, m};
}

void MatrixProducts::prepare(const Matrix& matrix, std::int64_t m) {
  const Key key = key_of(matrix, m);
  const MatmulProblem problem = problem_of(m, matrix.n, matrix.k, matrix.bits);
  if (matrix.bits == 16) {
    if (products_.find(key) == products_.end())
      products_.emplace(std::piecewise_construct, std::forward_as_tuple(key),
                        std::forward_as_tuple(on_sm90_ ? "cuda.f16_sm90" : "cuda.f16_sm80", problem, MatmulTensors{},
                                              stream_, allocator_));
    return;
  }
  if (quantized_.find(key) == quantized_.end()) quantized_.emplace(key, replan_weight_only(problem, matrix.weights));
}

void MatrixProducts::run(const Matrix& matrix, const void* x, void* y, std::int64_t m, Stream stream) {
  prepare(matrix, m);
  if (matrix.bits == 16) {
    products_.at(key_of(matrix, m)).run({.x = x, .w = matrix.weights.get(), .y = y}, stream);
    return;
  }
  run_weight_only(problem_of(m, matrix.n, matrix.k, matrix.bits), {.x = x, .y = y},
                  launch_of(quantized_.at(key_of(matrix, m)), stream));
}

bool MatrixProducts::has_late_norm(const Matrix& matrix, std::int64_t m) const {
  if (!on_sm90_) return false;
  const MatmulProblem problem = problem_of(m, matrix.n, matrix.k, matrix.bits);
  return matrix.bits == 16 ? f16_has_late_norm(problem) : weight_only_has_late_norm(problem, matrix.weights);
}

void MatrixProducts::prepare_gated(const Matrix& matrix, std::int64_t m) {
  std::shared_ptr<void>& state = gated_[key_of(matrix, m)];
  if (state != nullptr) return;
  const MatmulProblem problem = problem_of(m, matrix.n, matrix.k, matrix.bits);
  state = matrix.bits == 16 ? prepare_gated_f16(problem)
                            : replan_weight_only(problem, matrix.weights, WeightOnlyEnd::gated);
}

void MatrixProducts::run_gated(const Matrix& matrix, const void* x, void* y, std::int64_t m, const LateNorm& norm,
                               Stream stream) {
  prepare_gated(matrix, m);
  const Launch launch = launch_of(gated_.at(key_of(matrix, m)), stream);
  const MatmulProblem problem = problem_of(m, matrix.n, matrix.k, matrix.bits);
  if (matrix.bits == 16) {
    run_gated_f16(problem, {.x = x, .w = matrix.weights.get(), .y = y}, {norm}, launch);
  } else {
    run_weight_only(problem, {.x = x, .y = y}, GatedEnd{norm}, launch);
  }
}

void MatrixProducts::prepare_residual(const Matrix& matrix, std::int64_t m) {
  std::shared_ptr<void>& state = residual_[key_of(matrix, m)];
  if (state != nullptr) return;
  const MatmulProblem problem = problem_of(m, matrix.n, matrix.k, matrix.bits);
  state = matrix.bits == 16 ? prepare_residual_f16(problem)
                            : replan_weight_only(problem, matrix.weights, WeightOnlyEnd::residual);
}

int MatrixProducts::residual_parts(const Matrix& matrix, std::int64_t m) {
  if (matrix.bits == 16) return f16_residual_parts(problem_of(m, matrix.n, matrix.k, 16));
  prepare_residual(matrix, m);
  return weight_only_residual_parts(residual_.at(key_of(matrix, m)));
}

void MatrixProducts::run_residual(const Matrix& matrix, const void* x, ResidualEnd end, std::int64_t m, Stream stream) {
  prepare_residual(matrix, m);
  end.parts = residual_parts(matrix, m);
  const Launch launch = launch_of(residual_.at(key_of(matrix, m)), stream);
  const MatmulProblem problem = problem_of(m, matrix.n, matrix.k, matrix.bits);
  if (matrix.bits == 16) {
    run_residual_f16(problem, {.x = x, .w = matrix.weights.get()}, end, launch);
  } else {
    run_weight_only(problem, {.x = x}, end, launch);
  }
}

std::shared_ptr<void> quantize_matrix(const void* w, std::int64_t n, std::int64_t k, std::int64_t bits, Stream stream,
                                      Allocator& allocator) {
  const MatmulProblem problem = problem_of(1, n, k, bits);
  if (const auto sentence = weight_only_unsupported(problem, static_cast<int>(bits)))
    throw std::runtime_error("decoder: weights of " + std::to_string(bits) + " bits: " + *sentence);
  const auto codes = allocator.allocate(static_cast<std::size_t>(n * k * bits / 8), "codes");
  const auto scales = allocator.allocate(static_cast<std::size_t>(n * problem.groups()) * sizeof(__half), "scales");
  launch_quantize_weights(static_cast<const __half*>(w), n, k, bits, static_cast<std::uint8_t*>(codes.get()),
                          static_cast<__half*>(scales.get()), stream);
  Launch launch;
  launch.stream = stream;
  return prepare_weight_only(problem, {.w = codes.get(), .scales = scales.get()}, launch, allocator);
}

}  // namespace inferometer::decoder
