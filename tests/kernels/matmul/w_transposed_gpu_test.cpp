// cublas.f16, cuda.f16_sm80 and cuda.f16_sm90 with W stored [k, n].
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/matmul/matmul_problem.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

TEMPLATE_TEST_CASE_SIG("matmul kn: every n and k around tile edges is right under few tokens",
                       "[matmul][gpu][w_transposed]", ((std::int64_t n, Dtype dtype), n, dtype), (8, Dtype::f16),
                       (56, Dtype::f16), (64, Dtype::f16), (136, Dtype::f16), (1440, Dtype::f16), (1448, Dtype::f16),
                       (8, Dtype::bf16), (72, Dtype::bf16), (128, Dtype::bf16), (264, Dtype::bf16),
                       (1440, Dtype::bf16)) {
  for (const std::int64_t m : thinned<std::int64_t>({1, 8, 16, 17, 33, 64, 65}, 4))
    for (const std::int64_t k : thinned<std::int64_t>({8, 72, 4104}, 2))
      check_matmul({.m = m, .n = n, .k = k, .w_transposed = true, .dtype = dtype});
}

TEMPLATE_TEST_CASE_SIG("matmul kn: every n and k around tile edges is right under many tokens",
                       "[matmul][gpu][w_transposed]", ((std::int64_t n, Dtype dtype), n, dtype), (8, Dtype::f16),
                       (56, Dtype::f16), (64, Dtype::f16), (136, Dtype::f16), (1440, Dtype::f16), (1448, Dtype::f16),
                       (8, Dtype::bf16), (72, Dtype::bf16), (128, Dtype::bf16), (264, Dtype::bf16),
                       (1440, Dtype::bf16)) {
  for (const std::int64_t m : thinned<std::int64_t>({96, 128, 129, 257}, 3))
    for (const std::int64_t k : thinned<std::int64_t>({8, 72, 4104}, 2))
      check_matmul({.m = m, .n = n, .k = k, .w_transposed = true, .dtype = dtype});
}

TEST_CASE("matmul kn: many tiles are right", "[matmul][gpu][w_transposed]") {
  check_matmul({.m = 2100, .n = 4200, .k = 512, .w_transposed = true});
  check_matmul({.m = 4096, .n = 4096, .k = 256, .w_transposed = true, .dtype = Dtype::bf16});
}

TEST_CASE("matmul kn: every element of W is taken from its place", "[matmul][gpu][w_transposed]") {
  // With X the unit rows, Y is W as it is stored, exactly; no two elements near each other are equal.
  constexpr std::int64_t kK = 136;
  const auto unit = [](std::int64_t i) { return i / kK == i % kK ? 1.0F : 0.0F; };
  const auto w = [](std::int64_t i) { return static_cast<float>(i * 37 % 2039); };
  for (const std::string& variant : kMatmulVariants) {
    for (const std::int64_t n : {8, 72, 320, 1448}) {
      const VariantRun run =
          run_matmul(variant, {.m = kK, .n = n, .k = kK, .w_transposed = true}, 1, with_values(unit, w));
      INFO(variant << " n=" << n << run.unsupported);
      const std::vector<float>& y = run.outputs.at("y");
      for (std::int64_t i = 0; i < kK * n; ++i) REQUIRE(y[static_cast<std::size_t>(i)] == w(i));
    }
  }
}

TEST_CASE("matmul kn: a NaN reaches its own row or column and no other", "[matmul][gpu][w_transposed]") {
  constexpr std::int64_t kM = 70;
  constexpr std::int64_t kN = 136;
  constexpr std::int64_t kK = 200;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto x = [](std::int64_t i) { return i == 69 * kK + 199 ? kNan : 1.0F; };
  const auto w = [](std::int64_t i) { return i == 199 * kN + 135 ? kNan : 1.0F; };
  for (const std::string& variant : kMatmulVariants) {
    const auto y =
        run_matmul(variant, {.m = kM, .n = kN, .k = kK, .w_transposed = true}, 1, with_values(x, w)).outputs.at("y");
    for (std::int64_t i = 0; i < kM * kN; ++i) {
      const float value = y[static_cast<std::size_t>(i)];
      INFO(variant << " row " << i / kN << " column " << i % kN << " is " << value);
      REQUIRE((i / kN == 69 || i % kN == 135 ? std::isnan(value) : value == 200.0F));
    }
  }
}

TEST_CASE("matmul kn: cuBLAS takes rows of any alignment", "[matmul][gpu][w_transposed]") {
  for (const std::string& variant : without_cublas_under_racecheck({"cublas.f16"})) {
    for (const std::int64_t n : {1, 7, 1441}) {
      const VariantRun run = run_matmul(variant, {.m = 17, .n = n, .k = 33, .w_transposed = true});
      INFO("n=" << n << ": " << run.unsupported << run.check.reason);
      CHECK(run.check.passed);
    }
  }
}

TEST_CASE("matmul kn: an n that is no multiple of 8 is refused with the reason", "[matmul][gpu][w_transposed]") {
  const VariantRun run = run_matmul("cuda.f16_sm80", {.m = 16, .n = 100, .k = 64, .w_transposed = true});
  CHECK(run.unsupported ==
        "n must be a multiple of 8 with w_transposed, so that rows of W start on 16-byte boundaries, got 100");
}

}  // namespace
}  // namespace inferometer::test
