// weight_quantization: its fields, and a method's result as a tensor.
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/operator/nearest_word.hpp"
#include "harness/operator/operator.hpp"
#include "reference/checkpoint/checkpoint_error.hpp"
#include "reference/weight_quantization/file_layer.hpp"
#include "reference/weight_quantization/layer_source.hpp"
#include "reference/weight_quantization/problem.hpp"
#include "reference/weight_quantization/result_audit.hpp"
#include "reference/weight_quantization/result_tensor.hpp"

namespace inferometer {
namespace {

using Problem = WeightQuantizationProblem;
using Tensors = WeightQuantizationTensors;

constexpr std::int64_t kMostFeatures = std::int64_t{1} << 20;

bool is_a_file(const std::string& source) {
  std::error_code absent;  // then it is none
  return source.ends_with(".safetensors") || std::filesystem::is_directory(source, absent);
}

const std::vector<Field<Problem>> kFields = {
    {.name = "source",
     .member = &Problem::source,
     .doc = "where the layer comes from: a safetensors file or a model's folder; or, of no model, synthetic (weights "
            "with heavy tails, activations with outlier channels and correlation) or synthetic_uncorrelated (one input "
            "a token, so that no method can beat rounding by moving errors)"},
    {.name = "tensor",
     .member = &Problem::tensor,
     .doc = "of a file: the weights, a matrix [n, k]",
     .default_unsaid = true},
    {.name = "activations",
     .member = &Problem::activations,
     .doc = "of a file: the safetensors file with the activations [tokens, k], under the tensor's name without .weight",
     .default_unsaid = true},
    {.name = "n", .member = &Problem::n, .doc = "output features; those of the tensor, if any", .max = kMostFeatures},
    {.name = "k", .member = &Problem::k, .doc = "input features; those of the tensor, if any", .max = kMostFeatures},
    {.name = "bits", .member = &Problem::bits, .doc = "bits of a code: 2 to 8", .min = 2, .max = 8},
    {.name = "group_size",
     .member = &Problem::group_size,
     .doc = "weights of a row that share a grid; 0: all of k",
     .min = 0,
     .max = kMostFeatures},
    {.name = "symmetric", .member = &Problem::symmetric, .doc = "whether grids have no zero points"},
    {.name = "scale_dtype",
     .member = &Problem::scale_dtype,
     .doc = "type of the scales",
     .dtypes = {Dtype::f16, Dtype::bf16}},
    {.name = "calibration_tokens",
     .member = &Problem::calibration_tokens,
     .doc = "tokens whose activations a method may look at",
     .max = std::int64_t{1} << 24},
    {.name = "held_out_tokens",
     .member = &Problem::held_out_tokens,
     .doc = "tokens after them, which measure output_rel_error",
     .max = std::int64_t{1} << 24},
    {.name = "correlation",
     .member = &Problem::correlation,
     .doc = "of a synthetic layer: share of an input's variance, 0 to 1, that 16 factors of the token make",
     .real_max = 1},
    {.name = "damping",
     .member = &Problem::damping,
     .doc = "GPTQ: added to the diagonal of H, as a share of its mean, 0 to 1",
     .real_max = 1},
    {.name = "layer_seed",
     .member = &Problem::layer_seed,
     .doc = "seed of a synthetic layer; --seed does not change it",
     .min = 0},
};

// A file knows its sizes; what is wrong with one is for `validate` to say.
void complete(Problem& p) {
  if (is_synthetic_source(p.source) || !is_a_file(p.source)) return;
  try {
    const LayerShapeInFile shape = layer_shape_in_file(p);
    p.n = shape.n;
    p.k = shape.k;
  } catch (const CheckpointError&) {
    return;
  }
}

void validate_file(const Problem& p) {
  if (!is_a_file(p.source))
    throw ProblemError("source", "source must be a .safetensors file, a model's folder, or one of " +
                                     joined(synthetic_source_names()) + ", got " + in_quotes(p.source));
  if (p.tensor.empty()) throw ProblemError("tensor", "tensor must name the weights in " + p.source + ", got nothing");
  if (p.activations.empty())
    throw ProblemError("activations", "activations must name a safetensors file with what enters " +
                                          in_quotes(p.tensor) + ", got nothing");
  try {
    open_layer(p);
  } catch (const CheckpointError& error) {
    throw ProblemError("source", error.what());
  }
}

void validate(const Problem& p) {
  if (!is_synthetic_source(p.source)) return validate_file(p);
  for (const auto& [field, text] : {std::pair("tensor", &p.tensor), std::pair("activations", &p.activations)})
    if (!text->empty())
      throw ProblemError(field, std::string(field) + " must be empty for a synthetic layer, got " + in_quotes(*text));
  if (p.source == "synthetic_uncorrelated" && p.calibration_tokens < p.k)
    throw ProblemError("calibration_tokens", "calibration_tokens must be at least k (" + std::to_string(p.k) +
                                                 ") without correlation, for each token has one input, got " +
                                                 std::to_string(p.calibration_tokens));
}

// Rows [begin, begin + count) of a tensor [.., k], from the layer.
template <void (LayerSource::*kRow)(std::int64_t, std::span<float>) const>
Computed rows_of(const Problem& p) {
  const auto layer = open_layer(p);
  const auto k = static_cast<std::size_t>(p.k);
  return {.fill =
              [layer, k](std::uint64_t, std::int64_t begin, std::int64_t count, void* elements) {
                std::vector<float> row(k);
                auto* to = static_cast<float*>(elements);
                for (std::int64_t at = begin; at < begin + count;) {
                  const std::size_t first = static_cast<std::size_t>(at) % k;
                  const std::size_t size = std::min(k - first, static_cast<std::size_t>(begin + count - at));
                  (layer.get()->*kRow)(at / static_cast<std::int64_t>(k), row);
                  to = std::copy_n(row.data() + first, size, to);
                  at += static_cast<std::int64_t>(size);
                }
              },
          .row_elements = p.k};
}

std::vector<TensorSpec> tensors(const Problem& p) {
  return {{.name = "w", .role = Role::weights, .dtype = Dtype::f32, .shape = {p.n, p.k}},
          {.name = "x", .role = Role::input, .dtype = Dtype::f32, .shape = {p.calibration_tokens, p.k}},
          {.name = "result", .role = Role::output, .dtype = Dtype::i32, .shape = {result_elements(p)}}};
}

void add_contents(const Problem& p, std::vector<TensorSpec>& specs) {
  specs[0].source = rows_of<&LayerSource::weights>(p);
  specs[1].source = rows_of<&LayerSource::activations>(p);
}

Tensors bind(const Problem&, std::span<void* const> pointers) {
  return {.w = static_cast<const float*>(pointers[0]),
          .x = static_cast<const float*>(pointers[1]),
          .result = static_cast<std::int32_t*>(pointers[2])};
}

// Methods differ in what they compute; none of it is a rate worth comparing.
Work work(const Problem&) { return {}; }

// What every method's result begins with; the rest is for the audit.
std::vector<ExpectedSpan> expect(const Problem& p, const Inputs&, std::uint64_t, int) {
  return {{.tensor = "result",
           .begin = 0,
           .values = {static_cast<double>(p.n), static_cast<double>(p.k), static_cast<double>(p.groups())}}};
}

// Whole numbers: exact.
Tolerance tolerance(const Problem&, std::string_view) {
  return {.rel_l2 = 0, .max_error_over_rms = 0, .row_rel_l2 = 0};
}

std::span<const std::int32_t> result_of(const Problem& p, std::span<const void* const> tensors) {
  return {static_cast<const std::int32_t*>(tensors[2]), static_cast<std::size_t>(result_elements(p))};
}

std::string audit(const Problem& p, std::string_view variant, std::span<const void* const> tensors) {
  return audit_result(p, variant, result_of(p, tensors));
}

std::vector<Metric> metrics(const Problem& p, const Inputs&, std::span<const void* const> tensors, int threads) {
  return result_metrics(p, result_of(p, tensors), threads);
}

const RegisterOperator<WeightQuantization> registered{{
    .summary = "what a quantiser makes of a linear layer: errors of weights and outputs, bits a weight, time",
    .fields = kFields,
    .complete = &complete,
    .validate = &validate,
    .tensors = &tensors,
    .add_contents = &add_contents,
    .bind = &bind,
    .work = &work,
    .expect = &expect,
    .reference = "shape; codes on their grid; objectives from the activations; rtn row by row; gptq up to k = 512 by "
                 "Optimal Brain Quantization",
    .tolerance = &tolerance,
    .audit = &audit,
    .metrics = &metrics,
    .metric_docs = result_metric_docs(),
    .headline_metrics = {"output_rel_error", "weight_rel_error", "weights_bits_effective", "seconds"},
}};

}  // namespace
}  // namespace inferometer
