// matmul: its fields, which problems there are, and their cost.
#include "harness/operator/operator.hpp"

#include <cstdint>
#include <vector>

#include "reference/matmul/expected.hpp"
#include "reference/matmul/layout.hpp"
#include "reference/matmul/metrics.hpp"
#include "reference/matmul/problem.hpp"
#include "reference/matmul/tensors.hpp"

namespace inferometer {
namespace {

using Problem = MatmulProblem;

const std::vector<Field<Problem>> kFields = {
    {.name = "m", .member = &Problem::m, .doc = "rows of X and Y: tokens"},
    {.name = "n", .member = &Problem::n, .doc = "rows of W, columns of Y: output features"},
    {.name = "k", .member = &Problem::k, .doc = "columns of X and W: input features"},
    {.name = "bits",
     .member = &Problem::bits,
     .doc = "bits of a stored weight: 16 (dtype), or integer codes of 8 or 4 with scales",
     .min = 4,
     .max = 16},
    {.name = "activation_bits",
     .member = &Problem::activation_bits,
     .doc = "bits of X in the product: 16 (dtype), or with bits 8 also 8: int8 with a scale for each token, made from "
            "X as part of the work",
     .min = 8,
     .max = 16,
     .default_unsaid = true},
    {.name = "group_size",
     .member = &Problem::group_size,
     .doc = "weights along k that share a scale: 32, 64 or 128; 0: all of k; the last group may be short",
     .min = 0,
     .max = 128},
    {.name = "symmetric",
     .member = &Problem::symmetric,
     .doc = "quantised weights without zero points",
     .default_unsaid = true},
    {.name = "w_transposed",
     .member = &Problem::w_transposed,
     .doc = "W is stored [k, n], not [n, k] as in checkpoints; with bits 16 only",
     .default_unsaid = true},
    {.name = "dtype",
     .member = &Problem::dtype,
     .doc = "element type of X, Y and scales",
     .dtypes = {Dtype::f16, Dtype::bf16}},
};

void validate(const Problem& p) {
  check_weight_format(p);
  // In bytes of f32, so that no variant's offset into a tensor or a converted copy of it can overflow.
  checked_product("k", {p.m, p.k, 4});
  checked_product("n", {p.n, p.k, 4});
  checked_product("m", {p.m, p.n, 4});
}

// One multiply and one add for each of the m n k products.
Work work(const Problem& p) {
  double bytes = 0;
  for (const TensorSpec& spec : matmul_tensors(p)) bytes += static_cast<double>(spec.bytes());
  return {.flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k),
          .bytes = bytes,
          .arithmetic = p.activation_bits == 8 ? Arithmetic::int8_matmul : Arithmetic::f16_matmul};
}

const RegisterOperator<Matmul> registered{{
    .summary = "Y = X W^T, the product of a linear layer with weights of 16, 8 or 4 bits, accumulated in f32",
    .fields = kFields,
    .validate = &validate,
    .tensors = &matmul_tensors,
    .bind = &bind_matmul,
    .work = &work,
    .expect = &expect_matmul,
    .reference = "the sum of products in f64, of the stored weights",
    .tolerance = &matmul_tolerance,
    .metrics = &matmul_metrics,
    .metric_docs = matmul_metric_docs(),
    .headline_metrics = {"weights_bits_effective", "weights_of_f16_ratio", "quantization_rel_error",
                         "output_rel_error"},
}};

}  // namespace
}  // namespace inferometer
