// rms_norm: its fields, tensors and cost. The judge's answer is in expected.cpp.
#include "harness/operator/operator.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include "reference/rms_norm/expected.hpp"
#include "reference/rms_norm/problem.hpp"

namespace inferometer {
namespace {

using Problem = RmsNormProblem;
using Tensors = RmsNormTensors;

const std::vector<Field<Problem>> kFields = {
    {.name = "rows",
     .member = &Problem::rows,
     .doc = "rows of X: tokens, or heads of tokens where each head is normed"},
    {.name = "hidden", .member = &Problem::hidden, .doc = "elements of a row"},
    {.name = "residual",
     .member = &Problem::residual,
     .doc = "X is first added to the residual stream H; the sum is written and normed"},
    {.name = "eps",
     .member = &Problem::eps,
     .doc = "added to the mean square; positive, so that a row of zeros gives zeros",
     .real_min = 1e-12,
     .real_max = 1,
     .default_unsaid = true},
    {.name = "dtype",
     .member = &Problem::dtype,
     .doc = "element type of all tensors",
     .dtypes = {Dtype::f16, Dtype::bf16}},
};

// In bytes of f32, so that no offset into a tensor or a converted copy of it can overflow.
void validate(const Problem& p) { checked_product("rows", {p.rows, p.hidden, 4}); }

// Activations as small as those of first layers: a mean square of ten times the usual eps of 1e-5 shows a kernel that
// leaves it out. Gains around 1.
std::vector<TensorSpec> tensors(const Problem& p) {
  const Normal activations{.stddev = 0.01};
  const std::vector<std::int64_t> shape = {p.rows, p.hidden};
  std::vector<TensorSpec> specs;
  specs.push_back({.name = "x", .dtype = p.dtype, .shape = shape, .source = activations});
  specs.push_back({.name = "w",
                   .role = Role::weights,
                   .dtype = p.dtype,
                   .shape = {p.hidden},
                   .source = Normal{.stddev = 0.25, .mean = 1}});
  specs.push_back({.name = "y", .role = Role::output, .dtype = p.dtype, .shape = shape});
  if (p.residual) {
    specs.push_back({.name = "h", .dtype = p.dtype, .shape = shape, .source = activations});
    specs.push_back({.name = "h_sum", .role = Role::output, .dtype = p.dtype, .shape = shape});
  }
  return specs;
}

Tensors bind(const Problem& p, std::span<void* const> pointers) {
  Tensors t{.x = pointers[0], .w = pointers[1], .y = pointers[2]};
  if (p.residual) {
    t.h = pointers[3];
    t.h_sum = pointers[4];
  }
  return t;
}

// Of each element a square, its sum, and the products with the inverse root and the gain; with residual an addition.
Work work(const Problem& p) {
  double bytes = 0;
  for (const TensorSpec& spec : tensors(p)) bytes += static_cast<double>(spec.bytes());
  const double element_flops = p.residual ? 5 : 4;
  return {.flops = element_flops * static_cast<double>(p.rows) * static_cast<double>(p.hidden),
          .bytes = bytes,
          .arithmetic = Arithmetic::f32};
}

const RegisterOperator<RmsNorm> registered{{
    .summary = "Y = X / sqrt(mean(X^2) + eps) * W for each row, on request behind the addition to the residual stream",
    .fields = kFields,
    .validate = &validate,
    .tensors = &tensors,
    .bind = &bind,
    .work = &work,
    .expect = &expect_rms_norm,
    .reference = "the equation in f64, of the residual sum as dtype holds it",
    .tolerance = &rms_norm_tolerance,
}};

}  // namespace
}  // namespace inferometer
