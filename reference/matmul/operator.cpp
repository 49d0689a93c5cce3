// matmul: fields, tensors, cost, and the judge's answer in double precision.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/judge/sample.hpp"
#include "harness/judge/tolerance.hpp"
#include "harness/operator/operator.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/common/eigen.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {
namespace {

using Problem = MatmulProblem;
using Tensors = MatmulTensors;

// Y is judged in pieces of its rows, cut where kernels cut tiles. The last piece of a row takes what is left over, so
// that none but a whole row is shorter and the error of each can be set against its own magnitude.
constexpr std::int64_t kSegment = 64;

const std::vector<Field<Problem>> kFields = {
    {.name = "m", .member = &Problem::m, .doc = "rows of X and Y: tokens"},
    {.name = "n", .member = &Problem::n, .doc = "rows of W, columns of Y: output features"},
    {.name = "k", .member = &Problem::k, .doc = "columns of X and W: input features"},
    {.name = "bits", .member = &Problem::bits, .doc = "bits of a stored weight; 16: W holds dtype"},
    {.name = "dtype", .member = &Problem::dtype, .doc = "element type of X and Y", .dtypes = {Dtype::f16, Dtype::bf16}},
};

void validate(const Problem& p) {
  if (p.bits != 16) throw ProblemError("bits", "bits must be 16, got " + std::to_string(p.bits));
  // In bytes of f32, so that no variant's offset into a tensor or a converted copy of it can overflow.
  checked_product("k", {p.m, p.k, 4});
  checked_product("n", {p.n, p.k, 4});
  checked_product("m", {p.m, p.n, 4});
}

std::vector<TensorSpec> tensors(const Problem& p) {
  return {{.name = "x", .dtype = p.dtype, .shape = {p.m, p.k}},
          {.name = "w", .role = Role::weights, .dtype = p.dtype, .shape = {p.n, p.k}},
          {.name = "y", .role = Role::output, .dtype = p.dtype, .shape = {p.m, p.n}}};
}

Tensors bind(const Problem&, std::span<void* const> pointers) {
  return {.x = pointers[0], .w = pointers[1], .y = pointers[2]};
}

// One multiply and one add for each of the m n k products.
Work work(const Problem& p) {
  double bytes = 0;
  for (const TensorSpec& spec : tensors(p)) bytes += static_cast<double>(spec.bytes());
  return {.flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k),
          .bytes = bytes,
          .arithmetic = Arithmetic::f16_matmul};
}

// All of a small problem; of a large one at least 32 rows of at least 16 segments.
std::vector<ExpectedSpan> expect(const Problem& p, const Inputs& inputs, std::uint64_t seed, int threads) {
  constexpr std::int64_t kMultiplyAdds = std::int64_t{1} << 29;  // about 0.1 s of one core
  constexpr std::int64_t kReadCost = 16;  // multiply-adds in the time in which one input is regenerated
  const auto rows = sample_rows(p.m, std::clamp<std::int64_t>(kMultiplyAdds / p.n / p.k, 32, 1024), seed);
  const auto row_count = static_cast<std::int64_t>(rows.size());
  const std::int64_t segment_count = std::max<std::int64_t>(1, p.n / kSegment);
  const auto segments = sample_rows(
      segment_count, std::clamp<std::int64_t>(kMultiplyAdds / (row_count + kReadCost) / kSegment / p.k, 16, 1024),
      seed + 1);

  Eigen::MatrixXd x(p.k, row_count);  // one token per column
  for (std::int64_t r = 0; r < row_count; ++r) {
    const auto row = inputs.read("x", rows[static_cast<std::size_t>(r)] * p.k, p.k);
    x.col(r) = Eigen::Map<const Eigen::VectorXf>(row.data(), p.k).cast<double>();
  }
  std::vector<ExpectedSpan> spans(rows.size() * segments.size());
  parallel_for(std::ssize(segments), threads, [&](std::int64_t segment) {
    const auto s = static_cast<std::size_t>(segment);
    const std::int64_t begin = segments[s] * kSegment;
    const std::int64_t end = segments[s] + 1 == segment_count ? p.n : begin + kSegment;
    ExpectedSpan* const of_segment = &spans[s * rows.size()];
    for (std::size_t r = 0; r < rows.size(); ++r)
      of_segment[r] = {.tensor = "y", .begin = rows[r] * p.n + begin, .values = {}};
    for (std::int64_t j = begin; j < end; ++j) {
      const auto stored = inputs.read("w", j * p.k, p.k);
      const Eigen::VectorXd w = Eigen::Map<const Eigen::VectorXf>(stored.data(), p.k).cast<double>();
      for (std::int64_t r = 0; r < row_count; ++r) of_segment[r].values.push_back(x.col(r).dot(w));
    }
  });
  return spans;
}

Tolerance tolerance(const Problem& p, std::string_view) {
  return dot_product_tolerance(p.dtype, p.k, std::min(p.n, kSegment));
}

const RegisterOperator<Matmul> registered{{
    .summary = "Y = X W^T, the product of a linear layer, accumulated in f32",
    .fields = kFields,
    .validate = &validate,
    .tensors = &tensors,
    .bind = &bind,
    .work = &work,
    .expect = &expect,
    .reference = "the sum of products in f64",
    .tolerance = &tolerance,
}};

}  // namespace
}  // namespace inferometer
