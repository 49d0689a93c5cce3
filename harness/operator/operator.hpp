// An operator: what is computed, on which inputs, at what cost, and what the answer should be. Host only.
// It lives in reference/<operator>/operator.cpp and registers itself there:
//
//   const RegisterOperator<AttentionPrefill> registered{{.summary = "...", .fields = {...}, .tensors = &tensors, ...}};
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/fields.hpp"
#include "harness/operator/tensor.hpp"
#include "harness/operator/variant.hpp"

namespace inferometer {

// Which ceiling the arithmetic of a problem runs against.
enum class Arithmetic : std::uint8_t { f16_matmul, f32, int8_matmul };

struct Work {
  double flops = 0;  // a multiply and an add are two
  double bytes = 0;  // each input read once, each output written once
  Arithmetic arithmetic = Arithmetic::f16_matmul;
};

// Expected values, in double precision, of consecutive elements of one output tensor. They are judged as one row.
struct ExpectedSpan {
  std::string tensor;
  std::int64_t begin = 0;
  std::vector<double> values;
};

// How far an output may lie from its expected values. For a set of elements, error and magnitude are root mean squares
// of out - ref and of ref, and the magnitude is at least `rms_floor`. An output passes when error / magnitude is at
// most rel_l2 over all spans of its tensor and at most row_rel_l2 over each span, and when no element errs by more than
// max_error_over_rms times the magnitude of its span or tensor, whichever is greater. Infinities must match exactly,
// and a NaN in `out` never passes.
struct Tolerance {
  double rel_l2 = 0;
  double max_error_over_rms = 0;
  double row_rel_l2 = std::numeric_limits<double>::infinity();  // infinity: rows are not judged by themselves
  double rms_floor = 0;  // for values whose error is absolute: logarithms, and f16 results that may be subnormal
};

struct Metric {
  std::string name;  // unit as suffix
  double value = 0;
};

// A metric as `list operators` shows it: how it is defined, in a line.
struct MetricInfo {
  std::string name;
  std::string doc;
};

// What an author writes. `Problem` comes validated; functions may throw ProblemError from `validate` only.
template <class Op>
struct OperatorSpec {
  using Problem = typename Op::Problem;
  using Tensors = typename Op::Tensors;
  std::string_view summary;
  std::vector<Field<Problem>> fields;
  std::vector<FieldAlias> aliases = {};
  // Sets fields that follow from other fields, before `validate`.
  void (*complete)(Problem&) = nullptr;
  // Conditions between fields; throws ProblemError. Sizes are already within their fields' limits.
  void (*validate)(const Problem&) = nullptr;
  // In the order in which `bind` gets their pointers. Cheap: a problem far too large for the machine is asked too.
  std::vector<TensorSpec> (*tensors)(const Problem&) = nullptr;
  // Adds sources and unused elements that take time or memory to make; asked once the tensors are known to fit.
  void (*add_contents)(const Problem&, std::vector<TensorSpec>&) = nullptr;
  Tensors (*bind)(const Problem&, std::span<void* const> pointers) = nullptr;
  Work (*work)(const Problem&) = nullptr;
  // The judge: a sample of the outputs, always the same for the same problem and seed.
  std::vector<ExpectedSpan> (*expect)(const Problem&, const Inputs&, std::uint64_t seed, int threads) = nullptr;
  std::string_view reference;  // "cpu.naive in f64": how `expect` computes, for the record
  Tolerance (*tolerance)(const Problem&, std::string_view tensor) = nullptr;
  // What must hold of outputs beside `expect`: balances, and what depends on the variant. A sentence when it does not
  // hold, else empty. Pointers as for `metrics`.
  std::string (*audit)(const Problem&, std::string_view variant, std::span<const void* const> tensors) = nullptr;
  // Figures beside the time, from the outputs of a run that passed: one host pointer a tensor, null for inputs.
  std::vector<Metric> (*metrics)(const Problem&, const Inputs&, std::span<const void* const> tensors,
                                 int threads) = nullptr;
  std::vector<MetricInfo> metric_docs = {};  // all that `metrics` can return
  // Those that tables show, at most five, the most telling one first; the results file holds all.
  std::vector<std::string> headline_metrics = {};
};

// The same, with the problem behind a pointer to Op::Problem.
struct Operator {
  std::string name;
  std::string summary;
  std::string reference;
  std::vector<FieldInfo> fields;
  std::vector<FieldAlias> aliases;
  std::function<std::shared_ptr<const void>(const Fields&)> parse;      // throws ProblemError
  std::function<Fields(const void* problem)> describe;                  // every field, in order
  std::function<std::vector<TensorSpec>(const void* problem)> shapes;   // tensors without costly contents
  std::function<std::vector<TensorSpec>(const void* problem)> tensors;  // with all they hold
  std::function<std::shared_ptr<const void>(const void* problem, std::span<void* const> pointers)> bind;
  std::function<Work(const void* problem)> work;
  std::function<std::vector<ExpectedSpan>(const void* problem, const Inputs&, std::uint64_t seed, int threads)> expect;
  std::function<Tolerance(const void* problem, std::string_view tensor)> tolerance;
  std::function<std::string(const void* problem, std::string_view variant, std::span<const void* const> tensors)> audit;
  std::function<std::vector<Metric>(const void* problem, const Inputs&, std::span<const void* const> tensors,
                                    int threads)>
      metrics;
  std::vector<MetricInfo> metric_docs;
  std::vector<std::string> headline_metrics;
};

void register_operator(Operator op);

template <class Op>
struct RegisterOperator {
  explicit RegisterOperator(const OperatorSpec<Op>& spec) {
    using Problem = typename Op::Problem;
    using Tensors = typename Op::Tensors;
    const auto typed = [](const void* problem) -> const Problem& { return *static_cast<const Problem*>(problem); };
    Operator op;
    op.name = Op::kName;
    op.summary = spec.summary;
    op.reference = spec.reference;
    op.fields = field_infos(spec.fields);
    op.aliases = spec.aliases;
    op.metric_docs = spec.metric_docs;
    op.headline_metrics = spec.headline_metrics;
    op.parse = [spec](const Fields& given) -> std::shared_ptr<const void> {
      auto problem = std::make_shared<Problem>(problem_from_fields(spec.fields, spec.aliases, given));
      if (spec.complete != nullptr) spec.complete(*problem);
      if (spec.validate != nullptr) spec.validate(*problem);
      return problem;
    };
    op.describe = [spec, typed](const void* problem) { return fields_from_problem(spec.fields, typed(problem)); };
    op.shapes = [spec, typed](const void* problem) { return spec.tensors(typed(problem)); };
    op.tensors = [spec, typed](const void* problem) {
      std::vector<TensorSpec> specs = spec.tensors(typed(problem));
      if (spec.add_contents != nullptr) spec.add_contents(typed(problem), specs);
      return specs;
    };
    op.bind = [spec, typed](const void* problem, std::span<void* const> pointers) -> std::shared_ptr<const void> {
      return std::make_shared<Tensors>(spec.bind(typed(problem), pointers));
    };
    op.work = [spec, typed](const void* problem) { return spec.work(typed(problem)); };
    op.expect = [spec, typed](const void* problem, const Inputs& inputs, std::uint64_t seed, int threads) {
      return spec.expect(typed(problem), inputs, seed, threads);
    };
    op.tolerance = [spec, typed](const void* problem, std::string_view tensor) {
      return spec.tolerance(typed(problem), tensor);
    };
    op.audit = [spec, typed](const void* problem, std::string_view variant, std::span<const void* const> tensors) {
      return spec.audit != nullptr ? spec.audit(typed(problem), variant, tensors) : std::string();
    };
    op.metrics = [spec, typed](const void* problem, const Inputs& inputs, std::span<const void* const> tensors,
                               int threads) {
      return spec.metrics != nullptr ? spec.metrics(typed(problem), inputs, tensors, threads) : std::vector<Metric>();
    };
    register_operator(std::move(op));
  }
};

}  // namespace inferometer
