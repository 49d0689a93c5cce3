// matmul / cpu.eigen: shapes around the edges of its tiles and contents that broke other people's kernels.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/judge/tolerance.hpp"
#include "tests/reference/common/relaunch.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;
using test::relaunch;
using test::run_variant;
using test::VariantRun;

namespace {

struct Shape {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::string dtype = "f16";
  bool w_transposed = false;

  Fields fields() const { return {{"m", m}, {"n", n}, {"k", k}, {"w_transposed", w_transposed}, {"dtype", dtype}}; }
};

VariantRun run(const Shape& shape, const test::EditTensors& edit = {}) {
  return run_variant("matmul", "cpu.eigen", shape.fields(), 1, edit);
}

void check_passes(const Shape& shape) {
  CAPTURE(to_string(shape.fields()));
  const VariantRun answer = run(shape);
  INFO(answer.check.reason);
  CHECK(answer.check.passed);
}

}  // namespace

TEST_CASE("matmul cpu.eigen: sizes around the edges of all tiles agree with double precision", "[matmul][reference]") {
  for (const std::int64_t m : {1, 2, 3, 5, 6, 7, 8, 15, 16, 17, 21, 22, 47, 48, 49, 53, 97})
    for (const std::int64_t n : {1, 7, 8, 9, 63, 64, 65, 129})
      for (const std::int64_t k : {1, 31, 255, 256, 257}) check_passes({.m = m, .n = n, .k = k});
}

TEST_CASE("matmul cpu.eigen: a W stored by columns agrees with double precision", "[matmul][reference]") {
  for (const std::int64_t m : {1, 2, 5, 6, 8, 16, 17, 21, 47, 48, 49, 53, 485})
    for (const std::int64_t n : {1, 8, 9, 63, 64, 65, 129})
      for (const std::int64_t k : {1, 31, 256, 257}) check_passes({.m = m, .n = n, .k = k, .w_transposed = true});
  check_passes({.m = 20, .n = 130, .k = 1025, .dtype = "bf16", .w_transposed = true});
}

TEST_CASE("matmul cpu.eigen: W and its transpose stored by columns give the same Y", "[matmul][reference]") {
  constexpr std::int64_t kN = 70;
  constexpr std::int64_t kK = 300;
  const auto weight = [](std::int64_t j, std::int64_t i) { return static_cast<float>((j * 7 + i * 5) % 11 - 5); };
  const auto by_layout = [&](bool is_kn) {
    return [=](std::vector<TensorSpec>& specs) {
      specs[0].source = [](std::int64_t i) { return static_cast<float>(i % 7 - 3); };
      specs[1].source = [=](std::int64_t i) {
        return is_kn ? weight(i % kN, i / kN) : weight(i / kK, i % kK);  // sums of integers are exact
      };
    };
  };
  for (const std::int64_t m : {1, 5, 20, 50})
    CHECK(run({.m = m, .n = kN, .k = kK}, by_layout(false)).outputs.at("y") ==
          run({.m = m, .n = kN, .k = kK, .w_transposed = true}, by_layout(true)).outputs.at("y"));
}

TEST_CASE("matmul cpu.eigen: more tokens than one block, longer rows than one piece", "[matmul][reference]") {
  for (const char* dtype : {"f16", "bf16"})
    for (const std::int64_t m : {239, 240, 241, 479, 480, 481, 485, 486, 970})
      check_passes({.m = m, .n = 70, .k = 300, .dtype = dtype});
  for (const std::int64_t k : {1023, 1024, 1025, 2049})
    for (const std::int64_t m : {1, 5, 20}) check_passes({.m = m, .n = 130, .k = k, .dtype = "bf16"});
}

TEST_CASE("matmul cpu.eigen: a row does not depend on how many rows there are", "[matmul][reference]") {
  constexpr std::int64_t kColumns = 100;
  constexpr std::int64_t kDepth = 500;
  const std::vector<float> all = run({.m = 257, .n = kColumns, .k = kDepth}).outputs.at("y");
  // The f32 sums differ in the order of 500 products of deviation 1, each rounded once more to f16.
  const double sum_error = 5.5 * std::sqrt(500.0) * accumulation_error(kDepth);
  for (const std::int64_t m : {1, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 129}) {
    CAPTURE(m);
    const std::vector<float> some = run({.m = m, .n = kColumns, .k = kDepth}).outputs.at("y");
    double worst_excess = -1;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const double allowed = 2 * unit_roundoff(Dtype::f16) * std::abs(all[i]) + sum_error;
      worst_excess = std::max(worst_excess, std::abs(static_cast<double>(some[i]) - all[i]) - allowed);
    }
    CHECK(worst_excess <= 0);
  }
}

TEST_CASE("matmul cpu.eigen: 8192 ones sum to 8192, and alternating 60000 to 0", "[matmul][reference]") {
  for (const std::int64_t m : {1, 6, 64}) {
    CAPTURE(m);
    const auto ones = [](std::vector<TensorSpec>& specs) {
      for (TensorSpec& spec : specs) spec.source = [](std::int64_t) { return 1.0F; };
    };
    const VariantRun sum = run({.m = m, .n = 65, .k = 8192}, ones);
    for (const float y : sum.outputs.at("y")) REQUIRE(y == 8192.0F);
    const auto alternating = [&ones](std::vector<TensorSpec>& specs) {
      ones(specs);
      specs[1].source = [](std::int64_t i) { return i % 2 == 0 ? 6e4F : -6e4F; };
    };
    const VariantRun cancelled = run({.m = m, .n = 65, .k = 8192}, alternating);
    for (const float y : cancelled.outputs.at("y")) REQUIRE(y == 0.0F);
  }
}

TEST_CASE("matmul cpu.eigen: a result past 65504 is infinite in f16 and right in bf16", "[matmul][reference]") {
  const auto constants = [](std::vector<TensorSpec>& specs) {
    for (TensorSpec& spec : specs) spec.source = [](std::int64_t) { return 32.0F; };
  };
  for (const std::int64_t m : {1, 20}) {
    CAPTURE(m);
    CHECK(std::isinf(run({.m = m, .n = 3, .k = 64}, constants).outputs.at("y")[0]));
    CHECK(run({.m = m, .n = 3, .k = 64, .dtype = "bf16"}, constants).outputs.at("y")[0] == 65536.0F);
  }
}

TEST_CASE("matmul cpu.eigen: the answer depends neither on threads nor on what the workspace held",
          "[matmul][reference]") {
  for (const std::int64_t m : {3, 100}) {
    for (const bool transposed : {false, true}) {
      CAPTURE(m, transposed);
      const Fields fields = Shape{.m = m, .n = 200, .k = 300, .w_transposed = transposed}.fields();
      const auto once = relaunch("matmul", "cpu.eigen", fields, {{.seed = 1}});
      CHECK(relaunch("matmul", "cpu.eigen", fields, {{.seed = 9}, {.seed = 1}}) == once);
      for (const int threads : {2, 3, 64})
        CHECK(relaunch("matmul", "cpu.eigen", fields, {{.threads = threads}}) == once);
    }
  }
}

TEST_CASE("matmul cpu.eigen: no float copy of W is made", "[matmul][reference]") {
  const auto workspace = [](std::int64_t n) {
    const auto problem = find_operator("matmul")->parse(Shape{.m = 1, .n = n, .k = 4096}.fields());
    return find_variant("matmul", "cpu.eigen")->workspace_bytes(problem.get());
  };
  CHECK(workspace(1) > 0);
  CHECK(workspace(std::int64_t{1} << 20) == workspace(1));
}
