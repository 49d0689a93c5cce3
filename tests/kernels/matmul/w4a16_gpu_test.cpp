// cuda.w4a16 and cuda.w8a16 against the operator's judge, over shapes and formats, and on inputs with known answers.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "tests/kernels/matmul/weight_only_problem.hpp"
#include "tests/kernels/matmul/wide_tile_sizes.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

TEMPLATE_TEST_CASE_SIG("matmul weight-only: every format is right below, at and above the changes of kernel",
                       "[matmul][gpu]", ((std::int64_t bits, Dtype dtype), bits, dtype), (4, Dtype::f16),
                       (4, Dtype::bf16), (8, Dtype::f16), (8, Dtype::bf16)) {
  for (MatmulProblem p : weight_only_formats()) {
    if (p.bits != bits || p.dtype != dtype) continue;
    p.n = 1441;
    p.k = 4104;  // an odd number of slices, the last with 8 elements, and a short last group
    for (const std::int64_t m : thinned<std::int64_t>({1, 8, 9, 16, 17, 64, 65, 129}, 3)) {
      p.m = m;
      check_weight_only(p);
    }
  }
}

TEMPLATE_TEST_CASE_SIG("matmul weight-only: every m, n and k around tile edges is right", "[matmul][gpu]",
                       ((std::int64_t n), n), 1, 7, 8, 1440, 1441) {
  for (const std::int64_t m :
       thinned<std::int64_t>({1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 97, 127, 128, 129, 257}, 5)) {
    for (const std::int64_t k : thinned<std::int64_t>({8, 24, 64, 1032}, 3)) {
      for (const std::int64_t bits : {4, 8}) {
        const Dtype dtype = (m + n + k / 8) % 2 == 0 ? Dtype::f16 : Dtype::bf16;
        check_weight_only({.m = m, .n = n, .k = k, .bits = bits, .group_size = 128, .dtype = dtype});
      }
    }
  }
}

// A quarter of the formats for each size: of four sizes one after the other, which have the same tile, all of them.
void check_wide_tile_size(std::size_t size) {
  const std::vector<MatmulProblem> formats = weight_only_formats();
  for (std::size_t format = size % 4; format < formats.size(); format += 4) {
    MatmulProblem p = formats[format];
    p.m = kWideTileSizes.at(size).m;
    p.n = kWideTileSizes.at(size).n;
    p.k = kWideTileSizes.at(size).k;
    check_weight_only(p);
  }
}

TEMPLATE_TEST_CASE_SIG("matmul weight-only: tiles of 144 and 192 tokens are right in every format, whole and shared",
                       "[matmul][gpu]", ((std::size_t size), size), 0, 1, 2, 3, 4, 5, 6, 7) {
  check_wide_tile_size(size);
}

TEMPLATE_TEST_CASE_SIG("matmul weight-only: tiles of 256 tokens are right in every format, whole and shared",
                       "[matmul][gpu]", ((std::size_t size), size), 8, 9, 10, 11, 12, 13) {
  static_assert(kWideTileSizes.size() == 14);
  check_wide_tile_size(size);
}

TEST_CASE("matmul weight-only: long k of real models, with odd numbers of slices", "[matmul][gpu]") {
  for (const std::int64_t k : {29568, 10944, 27392})
    for (const std::int64_t m : {1, 16, 33, 129})
      for (const std::int64_t bits : {4, 8})
        check_weight_only({.m = m, .n = 200, .k = k, .bits = bits, .group_size = 64});
}

TEMPLATE_TEST_CASE_SIG("matmul weight-only: blocks that take several tiles are right", "[matmul][gpu]",
                       ((std::int64_t bits), bits), 4, 8) {
  check_weight_only({.m = 2100, .n = 4200, .k = 520, .bits = bits, .group_size = 128});
  check_weight_only({.m = 4096, .n = 4096, .k = 264, .bits = bits, .group_size = 32, .dtype = Dtype::bf16});
  check_weight_only({.m = 16, .n = 40000, .k = 136, .bits = bits, .group_size = 128});
}

TEST_CASE("matmul weight-only: random problems are right", "[matmul][gpu]") {
  const std::vector<MatmulProblem> formats = weight_only_formats();
  const std::uint64_t first_seed = std::random_device{}();
  for (std::uint64_t seed = first_seed; seed < first_seed + 50; seed += sanitizer_step(8)) {
    std::mt19937_64 random(seed);
    const auto log_uniform = [&](double most) {
      return static_cast<std::int64_t>(std::exp(std::uniform_real_distribution<double>(0, std::log(most))(random)));
    };
    MatmulProblem p = formats[random() % formats.size()];
    p.m = log_uniform(600);
    p.n = log_uniform(5000);
    p.k = 8 * log_uniform(1000);
    check_weight_only(p, seed);
  }
}

TEST_CASE("matmul weight-only: sums of 16 products, of which one may be most of the sum, are right", "[matmul][gpu]") {
  // Found at random: an element of 5.4 root mean squares whose error a bound for normal sums does not hold.
  check_weight_only({.m = 208, .n = 3084, .k = 16, .bits = 4, .group_size = 64, .symmetric = false}, 900148357);
}

TEST_CASE("matmul weight-only: all codes, zero points and positions are worth what the layout says", "[matmul][gpu]") {
  // With X the unit rows, Y is W^T itself; scales of 1 and integers up to 255 are exact in both types.
  for (const MatmulProblem& format : weight_only_formats()) {
    for (const std::int64_t m : {16, 64, 128}) {
      MatmulProblem p = format;
      p.m = m;
      p.n = std::int64_t{1} << p.bits;
      p.k = m;
      const std::int64_t group = p.group_size == 0 ? p.k : p.group_size;
      const VariantRun run = run_weight_only(p, 1, unit_rows_against_all_codes(p));
      INFO(to_string(quantized_fields(p)) << run.unsupported);
      const std::vector<float>& y = run.outputs.at("y");
      for (std::int64_t i = 0; i < p.k; ++i)
        for (std::int64_t j = 0; j < p.n; ++j)
          REQUIRE(y[static_cast<std::size_t>(i * p.n + j)] ==
                  static_cast<float>(code_at(p, j, i) - zero_at(p, j, i / group)));
    }
  }
}

// Elements of weights that are all 1: codes one above the middle, scale 1.
EditTensors ones_with(const MatmulProblem& p, const ElementOf& x) {
  const float code = p.bits == 4 ? 0x99 : 1;
  return with_elements(
      {{"x", x}, {"w", [code](std::int64_t) { return code; }}, {"scales", [](std::int64_t) { return 1.0F; }}});
}

TEST_CASE("matmul weight-only: 8192 ones add up to 8192, and large terms of both signs cancel", "[matmul][gpu]") {
  for (const std::int64_t bits : {4, 8}) {
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
      for (const std::int64_t m : {1, 16, 40, 200}) {
        const MatmulProblem p = {.m = m, .n = 72, .k = 8192, .bits = bits, .group_size = 128, .dtype = dtype};
        INFO(to_string(quantized_fields(p)));
        const auto all_are = [](const VariantRun& run, float value) {
          const std::vector<float>& y = run.outputs.at("y");
          return std::all_of(y.begin(), y.end(), [value](float element) { return element == value; });
        };
        CHECK(all_are(run_weight_only(p, 1, ones_with(p, [](std::int64_t) { return 1.0F; })), 8192.0F));
        const auto alternating = [](std::int64_t i) { return i % 2 == 0 ? 6e4F : -6e4F; };  // k is even
        CHECK(all_are(run_weight_only(p, 1, ones_with(p, alternating)), 0.0F));
      }
    }
  }
}

TEST_CASE("matmul weight-only: infinities, NaN and the largest values reach their own token's row alone",
          "[matmul][gpu]") {
  for (const std::int64_t bits : {4, 8}) {
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
      for (const std::int64_t m : {1, 5, 16, 40}) {
        const MatmulProblem p = {.m = m, .n = 71, .k = 1032, .bits = bits, .group_size = 128, .dtype = dtype};
        const std::int64_t token = m / 2;
        const float largest = dtype == Dtype::f16 ? 6e4F : 0x1p127F;
        for (const float value : {INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN(), largest}) {
          INFO(to_string(quantized_fields(p)) << " value=" << value);
          const auto x = [&p, token, value](std::int64_t i) { return i == token * p.k + 1000 ? value : 0.0F; };
          const std::vector<float> y = run_weight_only(p, 1, ones_with(p, x)).outputs.at("y");
          for (std::int64_t i = 0; i < m * p.n; ++i) {
            const float element = y[static_cast<std::size_t>(i)];
            if (i / p.n != token) {
              REQUIRE(element == 0);
            } else {
              REQUIRE((std::isnan(value) ? std::isnan(element) : element == value));
            }
          }
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE_SIG("matmul weight-only: a token's row is the same alone and in a batch", "[matmul][gpu]",
                       ((std::int64_t bits), bits), 4, 8) {
  // One rounding of the result in both, and from 17 tokens on one of every weight times its scale: k independent errors
  // of at most u each, relative to their terms, so that the root mean square of their sum is 0.6 u of that of the
  // results; a row's norm stays within 2.5 u, with a margin for its 1440 elements.
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    MatmulProblem p = {.m = 1, .n = 1440, .k = 4104, .bits = bits, .group_size = 128, .dtype = dtype};
    const std::vector<float> alone = run_weight_only(p).outputs.at("y");
    for (const std::int64_t m : {7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129, 257}) {
      p.m = m;
      const std::vector<float> batch = run_weight_only(p).outputs.at("y");
      double error = 0;
      double norm = 0;
      for (std::size_t i = 0; i < alone.size(); ++i) {
        error += std::pow(double{alone[i]} - batch[i], 2);
        norm += std::pow(double{alone[i]}, 2);
      }
      INFO(to_string(quantized_fields(p)));
      CHECK(std::sqrt(error / norm) <= 2.5 * unit_roundoff(dtype));
    }
  }
}

TEST_CASE("matmul weight-only: what it cannot do is refused with the reason", "[matmul][gpu]") {
  CHECK(run_weight_only({.m = 4, .n = 64, .k = 100, .bits = 4, .group_size = 32}).unsupported ==
        "k must be a multiple of 8, so that rows of X start on 16-byte boundaries, got 100");
  const VariantRun other_bits =
      run_variant("matmul", "cuda.w4a16", quantized_fields({.m = 4, .n = 64, .k = 64, .bits = 8}), 1);
  CHECK(other_bits.unsupported == "bits must be 4, got 8");
}

}  // namespace
}  // namespace inferometer::test
