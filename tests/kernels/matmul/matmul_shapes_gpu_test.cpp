// cublas.f16 and cuda.f16_sm80 against the operator's judge, over shapes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/matmul/matmul_problem.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

TEMPLATE_TEST_CASE_SIG("matmul: every n and k around tile edges is right under few tokens", "[matmul][gpu]",
                       ((std::int64_t n, Dtype dtype), n, dtype), (1, Dtype::f16), (7, Dtype::f16), (8, Dtype::f16),
                       (1440, Dtype::f16), (1441, Dtype::f16), (1, Dtype::bf16), (7, Dtype::bf16), (8, Dtype::bf16),
                       (1440, Dtype::bf16), (1441, Dtype::bf16)) {
  for (const std::int64_t m : thinned<std::int64_t>({1, 7, 8, 15, 16, 17, 63, 64, 65}, 4))
    for (const std::int64_t k : thinned<std::int64_t>({8, 24, 4104}, 2))
      check_matmul({.m = m, .n = n, .k = k, .dtype = dtype});
}

TEMPLATE_TEST_CASE_SIG("matmul: every n and k around tile edges is right under many tokens", "[matmul][gpu]",
                       ((std::int64_t n, Dtype dtype), n, dtype), (1, Dtype::f16), (7, Dtype::f16), (8, Dtype::f16),
                       (1440, Dtype::f16), (1441, Dtype::f16), (1, Dtype::bf16), (7, Dtype::bf16), (8, Dtype::bf16),
                       (1440, Dtype::bf16), (1441, Dtype::bf16)) {
  for (const std::int64_t m : thinned<std::int64_t>({127, 128, 129, 257}, 3))
    for (const std::int64_t k : thinned<std::int64_t>({8, 24, 4104}, 2))
      check_matmul({.m = m, .n = n, .k = k, .dtype = dtype});
}

TEST_CASE("matmul: a long k is right", "[matmul][gpu][large]") {
  for (const std::int64_t m : {1, 17, 129})
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) check_matmul({.m = m, .n = 1441, .k = 29568, .dtype = dtype});
}

TEST_CASE("matmul: many tiles are right in f16", "[matmul][gpu]") { check_matmul({.m = 2100, .n = 4200, .k = 512}); }

TEST_CASE("matmul: many tiles are right in bf16", "[matmul][gpu]") {
  check_matmul({.m = 4096, .n = 4096, .k = 256, .dtype = Dtype::bf16});
}

TEST_CASE("matmul: more tiles than a grid's y or z dimension holds are right", "[matmul][gpu][large]") {
  check_matmul({.m = 1, .n = 4300000, .k = 8});  // 67,188 tiles of 64 columns
}

void check_random(double most_slices) {  // of 8 elements of k
  const std::uint64_t first_seed = std::random_device{}();
  for (std::uint64_t seed = first_seed; seed < first_seed + 25; seed += sanitizer_step(6)) {
    std::mt19937_64 random(seed);
    const auto log_uniform = [&](double most) {
      return static_cast<std::int64_t>(std::exp(std::uniform_real_distribution<double>(0, std::log(most))(random)));
    };
    const std::int64_t m = log_uniform(700);
    const std::int64_t n = log_uniform(5000);
    const std::int64_t k = 8 * log_uniform(most_slices);
    const bool is_kn = random() % 2 == 0;
    check_matmul({.m = m,
                  .n = is_kn ? (n + 7) / 8 * 8 : n,
                  .k = k,
                  .w_transposed = is_kn,
                  .dtype = seed % 2 == 0 ? Dtype::f16 : Dtype::bf16},
                 seed);
  }
}

TEST_CASE("matmul: random problems are right", "[matmul][gpu][large]") { check_random(1500); }

TEST_CASE("matmul: random problems of a short k are right", "[matmul][gpu]") { check_random(150); }

TEST_CASE("matmul: cuBLAS takes rows of any alignment", "[matmul][gpu]") {
  for (const std::string& variant : without_cublas_under_racecheck({"cublas.f16"})) {
    for (const std::int64_t k : {1, 7, 1441}) {
      const VariantRun run = run_matmul(variant, {.m = 17, .n = 33, .k = k});
      INFO("k=" << k << ": " << run.unsupported << run.check.reason);
      CHECK(run.check.passed);
    }
  }
}

TEST_CASE("matmul: a k that is no multiple of 8 is refused with the reason", "[matmul][gpu]") {
  const VariantRun run = run_matmul("cuda.f16_sm80", {.m = 16, .n = 64, .k = 100});
  CHECK(run.unsupported == "k must be a multiple of 8, so that rows of X and W start on 16-byte boundaries, got 100");
}

TEST_CASE("matmul: a token's row is the same alone and in a batch", "[matmul][gpu][large]") {
  // Both round the same sum once, after adding f32 terms in different orders: at most one step of the type apart, plus
  // the error of the additions, k roundings of partial sums no larger than a few sqrt(k).
  constexpr std::int64_t kN = 1440;
  constexpr std::int64_t kK = 4104;
  constexpr double kSumError = 8.0 * kK * 0x1p-24;
  for (const std::string& variant : kMatmulVariants) {
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
      const auto alone = run_matmul(variant, {.m = 1, .n = kN, .k = kK, .dtype = dtype}).outputs.at("y");
      for (const std::int64_t m : {7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129, 257}) {
        const auto batch = run_matmul(variant, {.m = m, .n = kN, .k = kK, .dtype = dtype}).outputs.at("y");
        double worst = 0;
        for (std::size_t i = 0; i < kN; ++i) {
          worst = std::max(worst, std::abs(double{alone[i]} - batch[i]) /
                                      (2 * unit_roundoff(dtype) * std::abs(alone[i]) + kSumError));
        }
        INFO(variant << " m=" << m << " " << dtype_name(dtype));
        CHECK(worst <= 1.0);
      }
    }
  }
}

}  // namespace
}  // namespace inferometer::test
