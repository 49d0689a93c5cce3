// cublas.int8 and cuda.w8a8: int8 activations times int8 weights. Their sums are exact and their scales are applied in
// the same order, so that beside the judge they hold each other to the bit.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/matmul/prepared_matmul.hpp"
#include "tests/reference/matmul/quantized_problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

const std::vector<std::string> kVariants =
    without_cublas_under_racecheck({"cuda.w8a8", "cuda.w8a8_product", "cublas.int8"});

MatmulProblem int8_problem(std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype = Dtype::f16) {
  return {.m = m, .n = n, .k = k, .bits = 8, .activation_bits = 8, .dtype = dtype};
}

VariantRun run(const std::string& variant, const MatmulProblem& p, std::uint64_t seed = 1,
               const EditTensors& edit = {}) {
  return run_variant("matmul", variant, quantized_fields(p), seed, edit);
}

// Every variant that can do the problem, by the judge, and bit for bit the same.
void check_problem(const MatmulProblem& p, std::uint64_t seed = 1) {
  std::vector<std::byte> first;
  for (const std::string& variant : kVariants) {
    const VariantRun answer = run(variant, p, seed);
    INFO(variant << " " << to_string(quantized_fields(p)) << " seed=" << seed << ": " << answer.unsupported
                 << answer.check.reason);
    if (variant == "cublas.int8" && p.n % 8 != 0) {
      CHECK_FALSE(answer.unsupported.empty());
      continue;
    }
    CHECK(answer.check.passed);
    if (first.empty()) first = answer.raw.at("y");
    CHECK(answer.raw.at("y") == first);
  }
}

TEMPLATE_TEST_CASE_SIG("matmul int8: every m, n and k around tile edges is right in both types", "[matmul][int8][gpu]",
                       ((std::int64_t n), n), 1, 7, 8, 1440, 1441) {
  for (const std::int64_t m : thinned<std::int64_t>({1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129, 257}, 5))
    for (const std::int64_t k : thinned<std::int64_t>({16, 144, 4112}, 2))
      check_problem(int8_problem(m, n, k, (m + n + k) % 2 == 0 ? Dtype::f16 : Dtype::bf16));
}

TEST_CASE("matmul int8: long k of real models, and tokens longer than a block's registers", "[matmul][int8][gpu]") {
  for (const std::int64_t k : thinned<std::int64_t>({29568, 10944, 27392, 32768, 32784, 65552}, 3))
    for (const std::int64_t m : {1, 17, 129}) check_problem(int8_problem(m, 200, k));
}

TEST_CASE("matmul int8: many tiles are right", "[matmul][int8][gpu]") {
  check_problem(int8_problem(2100, 4200, 512));
  check_problem(int8_problem(4096, 4096, 256, Dtype::bf16));
}

TEST_CASE("matmul int8: random problems are right", "[matmul][int8][gpu]") {
  std::mt19937_64 random(20);
  const auto up_to = [&random](std::int64_t most) {  // about as many small ones as large ones
    const double exponent = std::uniform_real_distribution<>(0, std::log2(static_cast<double>(most)))(random);
    return static_cast<std::int64_t>(std::exp2(exponent));
  };
  for (std::uint64_t i = 0; i < 50; i += sanitizer_step(12))
    check_problem(int8_problem(up_to(1500), up_to(5000), 16 * up_to(500), random() % 2 == 0 ? Dtype::f16 : Dtype::bf16),
                  i);
}

TEST_CASE("matmul int8: all weights in all positions are worth what the layout says", "[matmul][int8][gpu]") {
  // A unit row has the code 127 and the scale 1 / 127: Y is W^T, after rounding.
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const MatmulProblem p = int8_problem(64, 256, 64, dtype);
    for (const std::string& variant : kVariants) {
      const std::vector<float> y = run(variant, p, 1, unit_rows_against_all_codes(p)).outputs.at("y");
      for (std::int64_t i = 0; i < p.k; ++i)
        for (std::int64_t j = 0; j < p.n; ++j)
          REQUIRE(y[static_cast<std::size_t>(i * p.n + j)] == static_cast<float>(code_at(p, j, i)));
    }
  }
}

TEST_CASE("matmul int8: 8192 ones sum to 8192, alternating signs to 0", "[matmul][int8][gpu]") {
  const auto one = [](std::int64_t) { return 1.0F; };
  const auto alternating = [](std::int64_t i) { return i % 2 == 0 ? 6e4F : -6e4F; };
  for (const std::string& variant : kVariants) {
    for (const std::int64_t m : {1, 40, 200}) {
      const MatmulProblem p = int8_problem(m, 72, 8192);
      CAPTURE(variant, m);
      const VariantRun sum = run(variant, p, 1, with_elements({{"x", one}, {"w", one}, {"scales", one}}));
      for (const float y : sum.outputs.at("y")) REQUIRE(y == 8192.0F);
      const VariantRun none = run(variant, p, 1, with_elements({{"x", alternating}, {"w", one}, {"scales", one}}));
      for (const float y : none.outputs.at("y")) REQUIRE(y == 0.0F);
    }
  }
}

TEST_CASE("matmul int8: the greatest sum that k allows does not overflow", "[matmul][int8][gpu]") {
  const auto one = [](std::int64_t) { return 1.0F; };
  const auto least_code = [](std::int64_t) { return 128.0F; };  // as a byte: -128
  constexpr std::int64_t kDepth = 132096;                       // 127 * 128 of them make 2^31 - 131072
  for (const std::string& variant : kVariants) {
    for (const std::int64_t m : {1, 130}) {
      CAPTURE(variant, m);
      const VariantRun answer = run(variant, int8_problem(m, 8, kDepth, Dtype::bf16), 1,
                                    with_elements({{"x", one}, {"w", least_code}, {"scales", one}}));
      for (const float y : answer.outputs.at("y")) REQUIRE(y == -128.0F * kDepth);  // 129 * 2^17
    }
  }
}

TEST_CASE("matmul int8: a token of zeros gives zeros, one with an infinity or a NaN gives NaN, alone",
          "[matmul][int8][gpu]") {
  constexpr std::int64_t kDepth = 208;
  for (const float value : {INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN()}) {
    const auto x = [value](std::int64_t i) {
      if (i / kDepth == 2) return 0.0F;
      return i == 5 * kDepth + 7 ? value : 1.0F;
    };
    for (const std::string& variant : kVariants) {
      CAPTURE(variant, value);
      const std::vector<float> y =
          run(variant, int8_problem(9, 40, kDepth), 1, with_elements({{"x", x}})).outputs.at("y");
      for (std::size_t i = 0; i < y.size(); ++i) {
        REQUIRE(std::isnan(y[i]) == (i / 40 == 5));
        if (i / 40 == 2) REQUIRE(y[i] == 0.0F);
      }
    }
  }
}

TEST_CASE("matmul int8: a row does not depend on how many rows there are", "[matmul][int8][gpu]") {
  constexpr std::int64_t kN = 520;
  constexpr std::int64_t kK = 1040;
  for (const std::string& variant : kVariants) {
    const std::vector<std::byte> all = run(variant, int8_problem(257, kN, kK)).raw.at("y");
    for (const std::int64_t m : {1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129}) {
      CAPTURE(variant, m);
      const std::vector<std::byte> some = run(variant, int8_problem(m, kN, kK)).raw.at("y");
      CHECK(std::equal(some.begin(), some.end(), all.begin()));
    }
  }
}

void check_streams(const std::vector<MatmulProblem>& problems, int repeats) {
  const std::unique_ptr<Device> device = gpu();
  for (const std::string& variant : kVariants) {
    for (const MatmulProblem& p : problems) {
      INFO(variant << " " << to_string(quantized_fields(p)));
      check_two_streams(*device, variant, quantized_fields(p), repeats);
    }
  }
}

TEST_CASE("matmul int8: every launch gives the same bits, and two streams do not meet", "[matmul][int8][gpu][large]") {
  check_streams({int8_problem(1, 4096, 4096), int8_problem(64, 4096, 4096), int8_problem(1000, 3000, 512)}, 20);
}

TEST_CASE("matmul int8: every launch of a small product gives the same bits, and two streams do not meet",
          "[matmul][int8][gpu]") {
  check_streams({int8_problem(1, 512, 2064), int8_problem(257, 600, 1040)}, 2);
}

TEST_CASE("matmul int8: what a variant cannot do is refused in a sentence", "[matmul][int8][gpu]") {
  CHECK(run("cuda.w8a8", {.m = 1, .n = 8, .k = 32, .bits = 8}).unsupported == "activation_bits must be 8, got 16");
  CHECK(run("cublas.int8", {.m = 1, .n = 8, .k = 32}).unsupported == "activation_bits must be 8, got 16");
  CHECK(run("cuda.w8a8", int8_problem(1, 8, 24)).unsupported.starts_with("k must be a multiple of 16"));
  CHECK(run("cublas.int8", int8_problem(1, 6, 32)).unsupported.starts_with("n must be a multiple of 8"));
}

}  // namespace
}  // namespace inferometer::test
