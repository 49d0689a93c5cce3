#include "kernels/decoder/matrix_gpu.hpp"

#include <cuda_fp16.h>

#include <string>
#include <utility>

#include "kernels/common/sm90_only.hpp"
#include "kernels/decoder/quantize_weights.hpp"
#include "kernels/matmul/weight_only_variant.hpp"
#include "reference/decoder/problem.hpp"

namespace inferometer::decoder {
namespace {

MatmulProblem problem_of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t bits) {
  return {.m = m, .n = n, .k = k, .bits = bits, .group_size = bits == 16 ? 0 : kWeightGroup};
}

}  // namespace

const void* Matrix::data() const { return bits == 16 ? weights.get() : packed_weights(weights).data(); }

std::int64_t Matrix::bytes() const {
  return bits == 16 ? n * k * 2 : static_cast<std::int64_t>(packed_weights(weights).size());
}

MatrixProducts::MatrixProducts(Stream stream, Allocator& allocator)
    : stream_(stream), allocator_(allocator), variant_(on_sm90() ? "cuda.f16_sm90" : "cuda.f16_sm80") {}

void MatrixProducts::prepare(const Matrix& matrix, std::int64_t m) {
  const MatmulProblem problem = problem_of(m, matrix.n, matrix.k, matrix.bits);
  if (matrix.bits == 16) {
    const Key key{nullptr, matrix.n, matrix.k, m};
    if (products_.find(key) == products_.end())
      products_.emplace(std::piecewise_construct, std::forward_as_tuple(key),
                        std::forward_as_tuple(variant_, problem, MatmulTensors{}, stream_, allocator_));
    return;
  }
  const Key key{matrix.weights.get(), matrix.n, matrix.k, m};
  if (quantized_.find(key) == quantized_.end()) quantized_.emplace(key, replan_weight_only(problem, matrix.weights));
}

void MatrixProducts::run(const Matrix& matrix, const void* x, void* y, std::int64_t m, Stream stream) {
  prepare(matrix, m);
  if (matrix.bits == 16) {
    products_.at({nullptr, matrix.n, matrix.k, m}).run({.x = x, .w = matrix.weights.get(), .y = y}, stream);
    return;
  }
  Launch launch;
  launch.stream = stream;
  launch.state = quantized_.at({matrix.weights.get(), matrix.n, matrix.k, m}).get();
  run_weight_only(problem_of(m, matrix.n, matrix.k, matrix.bits), {.x = x, .y = y}, launch);
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
