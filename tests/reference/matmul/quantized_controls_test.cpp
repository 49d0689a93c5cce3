// Negative controls: products of weights that are read wrong in the ways kernels read them wrong fail the judge.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/judge.hpp"
#include "harness/operator/registry.hpp"
#include "tests/reference/matmul/quantized_problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;

namespace {

using Values = std::vector<float>;
// Changes what a kernel sees of a tensor.
using Change = std::function<void(Values&)>;

class Subject {
 public:
  explicit Subject(const MatmulProblem& p)
      : fields_(test::quantized_fields(p)),
        problem_(op_.parse(fields_)),
        specs_(op_.tensors(problem_.get())),
        expected_(op_.expect(problem_.get(), Inputs(specs_, 1), 1, 2)) {}

  // The judge's word on the product of changed tensors as an answer to the unchanged problem.
  Check judge_changed(const std::map<std::string, Change>& changes) const {
    std::map<std::string, test::ElementOf> sources;
    for (const auto& [name, change] : changes) {
      const TensorSpec& spec = specs_[Inputs(specs_, 1).index_of(name)];
      const auto values = std::make_shared<Values>(Inputs(specs_, 1).read(name, 0, spec.elements()));
      change(*values);
      sources[name] = [values](std::int64_t i) { return (*values)[static_cast<std::size_t>(i)]; };
    }
    const test::VariantRun run =
        test::run_variant("matmul", "cpu.dequantize", fields_, 1, test::with_elements(sources));
    const OutputView view{.spec = &specs_.back(), .data = run.raw.at("y").data()};
    return judge(
        std::span(&view, 1), expected_, [&](std::string_view name) { return op_.tolerance(problem_.get(), name); }, "",
        2);
  }

 private:
  const Operator& op_ = *find_operator("matmul");
  Fields fields_;
  std::shared_ptr<const void> problem_;
  std::vector<TensorSpec> specs_;
  std::vector<ExpectedSpan> expected_;
};

constexpr std::int64_t kSize = 256;  // n and k

MatmulProblem problem(const MatmulProblem& format) {
  MatmulProblem p = format;
  p.m = 40;
  p.n = p.k = kSize;
  return p;
}

// The high nibble first.
void swap_nibbles(Values& bytes) {
  for (float& value : bytes) {
    const auto byte = static_cast<int>(value);
    value = static_cast<float>(byte / 16 + byte % 16 * 16);
  }
}

}  // namespace

TEST_CASE("matmul controls: unchanged tensors pass", "[matmul][controls]") {
  for (const MatmulProblem& format : test::weight_formats()) {
    const MatmulProblem p = problem(format);
    CAPTURE(to_string(test::quantized_fields(p)));
    const Check check = Subject(p).judge_changed({{"w", [](Values&) {}}});
    INFO(check.reason);
    CHECK(check.passed);
  }
}

TEST_CASE("matmul controls: another group's or another row's scale fails", "[matmul][controls]") {
  for (const MatmulProblem& format : test::weight_formats()) {
    const MatmulProblem p = problem(format);
    CAPTURE(to_string(test::quantized_fields(p)));
    const Change shifted = [](Values& scales) { std::rotate(scales.begin(), scales.begin() + 1, scales.end()); };
    CHECK_FALSE(Subject(p).judge_changed({{"scales", shifted}}).passed);
  }
}

TEST_CASE("matmul controls: swapped nibbles fail", "[matmul][controls]") {
  for (const MatmulProblem& format : test::weight_formats()) {
    if (format.bits != 4) continue;
    const MatmulProblem p = problem(format);
    CAPTURE(to_string(test::quantized_fields(p)));
    CHECK_FALSE(Subject(p).judge_changed({{"w", swap_nibbles}}).passed);
  }
}

TEST_CASE("matmul controls: zero points off by one fail, all of them and a single one", "[matmul][controls]") {
  for (const MatmulProblem& format : test::weight_formats()) {
    if (format.symmetric) continue;
    const MatmulProblem p = problem(format);
    CAPTURE(to_string(test::quantized_fields(p)));
    const Subject subject(p);
    // One less is always a zero point: those of synthetic weights lie near the middle, and only the low nibble changes.
    const auto less_one = [](float& byte) { byte -= 1; };
    const Change all = [&](Values& zeros) { std::for_each(zeros.begin(), zeros.end(), less_one); };
    CHECK_FALSE(subject.judge_changed({{"zeros", all}}).passed);
    // In one group of one row an 8-bit step is below what rounding Y to bf16 may change: 2^-8 of it.
    if (p.bits == 8 && p.dtype == Dtype::bf16) continue;
    const Change first = [&](Values& zeros) { less_one(zeros.front()); };
    CHECK_FALSE(subject.judge_changed({{"zeros", first}}).passed);
  }
}

TEST_CASE("matmul controls: a slice of k left out fails", "[matmul][controls]") {
  for (const MatmulProblem& format : test::weight_formats()) {
    const MatmulProblem p = problem(format);
    CAPTURE(to_string(test::quantized_fields(p)));
    const Change cut = [](Values& x) {
      for (std::size_t i = 0; i < x.size(); ++i)
        if (i % kSize >= kSize - 16) x[i] = 0;
    };
    CHECK_FALSE(Subject(p).judge_changed({{"x", cut}}).passed);
  }
}

TEST_CASE("matmul controls: 8-bit activations must be quantised, and by token", "[matmul][controls]") {
  const MatmulProblem p = problem({.bits = 8, .activation_bits = 8});
  MatmulProblem unquantised = p;
  unquantised.activation_bits = 16;
  const Operator& op = *find_operator("matmul");
  const auto parsed = op.parse(test::quantized_fields(p));
  const std::vector<TensorSpec> specs = op.tensors(parsed.get());
  const auto expected = op.expect(parsed.get(), Inputs(specs, 1), 1, 2);
  const test::VariantRun run =
      test::run_variant("matmul", "cpu.dequantize", test::quantized_fields(unquantised), 1, {});
  REQUIRE(run.check.passed);
  const OutputView view{.spec = &specs.back(), .data = run.raw.at("y").data()};
  const Check check = judge(
      std::span(&view, 1), expected, [&](std::string_view name) { return op.tolerance(parsed.get(), name); }, "", 2);
  CHECK_FALSE(check.passed);
}
