// matmul / cpu.dequantize: every format of quantised weights, and contents whose answers are known.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/judge/tolerance.hpp"
#include "tests/reference/common/relaunch.hpp"
#include "tests/reference/matmul/quantized_problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;
using test::with_elements;

namespace {

constexpr const char* kVariant = "cpu.dequantize";

test::VariantRun run(const MatmulProblem& p, const test::EditTensors& edit = {}) {
  return test::run_variant("matmul", kVariant, test::quantized_fields(p), 1, edit);
}

}  // namespace

TEST_CASE("matmul cpu.dequantize: every format agrees with double precision", "[matmul][reference]") {
  for (const MatmulProblem& format : test::weight_formats()) {
    for (const std::int64_t m : {1, 5, 33}) {
      for (const std::int64_t n : {1, 7, 65}) {
        for (const std::int64_t k : {2, 30, 128, 130, 322}) {
          MatmulProblem p = format;
          p.m = m;
          p.n = n;
          p.k = k;
          CAPTURE(to_string(test::quantized_fields(p)));
          const test::VariantRun answer = run(p);
          INFO(answer.check.reason);
          CHECK(answer.check.passed);
        }
      }
    }
  }
}

TEST_CASE("matmul cpu.dequantize: all codes, zero points and positions are worth what the layout says",
          "[matmul][reference]") {
  // With X the unit rows, Y is W^T itself.
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    for (const std::int64_t bits : {4, 8}) {
      for (const bool symmetric : {true, false}) {
        const std::int64_t levels = std::int64_t{1} << bits;
        const MatmulProblem p{
            .m = 64, .n = levels, .k = 64, .bits = bits, .group_size = 32, .symmetric = symmetric, .dtype = dtype};
        CAPTURE(to_string(test::quantized_fields(p)));
        const std::vector<float> y = run(p, test::unit_rows_against_all_codes(p)).outputs.at("y");
        for (std::int64_t i = 0; i < p.k; ++i)
          for (std::int64_t j = 0; j < p.n; ++j)
            REQUIRE(y[static_cast<std::size_t>(i * p.n + j)] ==
                    static_cast<float>(test::code_at(p, j, i) - test::zero_at(p, j, i / 32)));
      }
    }
  }
}

TEST_CASE("matmul cpu.dequantize: 8192 ones sum to 8192, and alternating signs to 0", "[matmul][reference]") {
  const auto one = [](std::int64_t) { return 1.0F; };
  const auto alternating = [](std::int64_t i) { return i % 2 == 0 ? 6e4F : -6e4F; };
  const auto both_nines = [](std::int64_t) { return static_cast<float>(0x99); };  // q = 1, twice
  for (const std::int64_t bits : {8, 4}) {
    const MatmulProblem p{.m = 6, .n = 65, .k = 8192, .bits = bits, .group_size = 128};
    const auto codes = bits == 4 ? test::ElementOf(both_nines) : test::ElementOf(one);
    CAPTURE(bits);
    const test::VariantRun sum = run(p, with_elements({{"x", one}, {"w", codes}, {"scales", one}}));
    for (const float y : sum.outputs.at("y")) REQUIRE(y == 8192.0F);
    const test::VariantRun cancelled = run(p, with_elements({{"x", alternating}, {"w", codes}, {"scales", one}}));
    for (const float y : cancelled.outputs.at("y")) REQUIRE(y == 0.0F);
  }
}

TEST_CASE("matmul cpu.dequantize: a row does not depend on how many rows there are", "[matmul][reference]") {
  for (const MatmulProblem& format : test::weight_formats()) {
    MatmulProblem p = format;
    p.n = 20;
    p.k = 320;
    p.m = 257;
    CAPTURE(to_string(test::quantized_fields(p)));
    const std::vector<float> all = run(p).outputs.at("y");
    // The f32 sums differ in the order of 320 products of deviation 0.024; int8 sums are exact. Each is rounded to
    // dtype.
    const double sum_error = p.activation_bits == 8 ? 0 : 5.5 * 0.024 * std::sqrt(320.0) * accumulation_error(p.k);
    for (const std::int64_t m : {1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129}) {
      p.m = m;
      const std::vector<float> some = run(p).outputs.at("y");
      double worst_excess = -1;
      for (std::size_t i = 0; i < some.size(); ++i) {
        const double rounding = p.activation_bits == 8 ? 0 : 2 * unit_roundoff(p.dtype) * std::abs(all[i]);
        worst_excess = std::max(worst_excess, std::abs(static_cast<double>(some[i]) - all[i]) - rounding - sum_error);
      }
      CHECK(worst_excess <= 0);
    }
  }
}

TEST_CASE("matmul cpu.dequantize: with 8-bit activations a token with an infinity or a NaN gives NaN, alone",
          "[matmul][reference]") {
  const MatmulProblem p{.m = 3, .n = 9, .k = 40, .bits = 8, .activation_bits = 8};
  for (const float value : {INFINITY, -INFINITY, NAN}) {
    const auto x = [value](std::int64_t i) { return i == 40 + 7 ? value : 1.0F; };
    const std::vector<float> y = run(p, with_elements({{"x", x}})).outputs.at("y");
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i / 9 == 1));
  }
}

TEST_CASE("matmul cpu.dequantize: the answer does not depend on threads", "[matmul][reference]") {
  for (const MatmulProblem& format : test::weight_formats()) {
    MatmulProblem p = format;
    p.m = 5;
    p.n = 100;
    p.k = 96;
    const Fields fields = test::quantized_fields(p);
    const auto once = test::relaunch("matmul", kVariant, fields, {{.threads = 1}});
    for (const int threads : {2, 7}) CHECK(test::relaunch("matmul", kVariant, fields, {{.threads = threads}}) == once);
  }
}

TEST_CASE("matmul cpu.dequantize: weights of 16 bits are refused", "[matmul][reference]") {
  CHECK(run({.m = 1, .n = 1, .k = 8}).unsupported == "bits must be 8 or 4, got 16");
}
