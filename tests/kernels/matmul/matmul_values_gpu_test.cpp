// cublas.f16 and cuda.f16_sm80 on inputs that show how sums are kept.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/matmul/matmul_problem.hpp"

namespace inferometer::test {
namespace {

TEST_CASE("matmul: 8192 ones add up to 8192", "[matmul][gpu]") {
  // Sums kept in f16 stop growing at 2048.
  const auto one = [](std::int64_t) { return 1.0F; };
  for (const std::string& variant : kMatmulVariants) {
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
      for (const std::int64_t m : {1, 40, 200}) {
        const VariantRun run =
            run_matmul(variant, {.m = m, .n = 72, .k = 8192, .dtype = dtype}, 1, with_values(one, one));
        INFO(variant << " m=" << m << " " << dtype_name(dtype) << run.unsupported);
        const std::vector<float>& y = run.outputs.at("y");
        CHECK(std::all_of(y.begin(), y.end(), [](float value) { return value == 8192.0F; }));
      }
    }
  }
}

TEST_CASE("matmul: large terms of both signs cancel", "[matmul][gpu]") {
  // Partial sums in f16 overflow, and inf - inf is NaN. In f32 they are exact: multiples of 32 below 2^29.
  const auto alternating = [](std::int64_t i) { return i % 2 == 0 ? 6e4F : -6e4F; };  // k is even
  const auto halves = [](std::int64_t i) { return i % 8192 < 4096 ? 6e4F : -6e4F; };  // also between split-K parts
  const auto one = [](std::int64_t) { return 1.0F; };
  for (const std::string& variant : kMatmulVariants) {
    for (const std::int64_t m : {1, 40, 200}) {
      for (const bool by_halves : {false, true}) {
        const VariantRun run = run_matmul(variant, {.m = m, .n = 72, .k = 8192}, 1,
                                          by_halves ? with_values(halves, one) : with_values(alternating, one));
        INFO(variant << " m=" << m << (by_halves ? " halves" : " alternating") << run.unsupported);
        const std::vector<float>& y = run.outputs.at("y");
        CHECK(std::all_of(y.begin(), y.end(), [](float value) { return value == 0.0F; }));
      }
    }
  }
}

TEST_CASE("matmul: a NaN reaches its own row or column and no other", "[matmul][gpu]") {
  constexpr std::int64_t kM = 70;
  constexpr std::int64_t kN = 136;
  constexpr std::int64_t kK = 200;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto x = [](std::int64_t i) { return i == 69 * kK + 199 ? kNan : 1.0F; };
  const auto w = [](std::int64_t i) { return i == 135 * kK ? kNan : 1.0F; };
  for (const std::string& variant : kMatmulVariants) {
    const auto y = run_matmul(variant, {.m = kM, .n = kN, .k = kK}, 1, with_values(x, w)).outputs.at("y");
    for (std::int64_t row = 0; row < kM; ++row) {
      for (std::int64_t column = 0; column < kN; ++column) {
        const float value = y[static_cast<std::size_t>(row * kN + column)];
        INFO(variant << " row " << row << " column " << column << " is " << value);
        if (row == 69 || column == 135) {
          REQUIRE(std::isnan(value));
        } else {
          REQUIRE(value == 200.0F);
        }
      }
    }
  }
}

}  // namespace
}  // namespace inferometer::test
