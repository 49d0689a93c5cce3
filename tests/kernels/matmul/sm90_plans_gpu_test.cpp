// Every plan of cuda.f16_sm90, whatever the cost model thinks of it.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/registry.hpp"
#include "kernels/common/gpu_limits.hpp"
#include "kernels/matmul/f16_sm90_kernels.hpp"
#include "kernels/matmul/sm90_launch.hpp"
#include "kernels/matmul/sm90_plan.hpp"
#include "kernels/matmul/sm90_tile_table.hpp"
#include "tests/kernels/matmul/matmul_problem.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

// Inputs of one problem, filled as run_matmul fills them, and a Y.
class Operands {
 public:
  Operands(Device& device, const MatmulProblem& p, std::uint64_t seed) : device_(device), p_(p) {
    const Operator& op = *find_operator("matmul");
    const auto problem = op.parse(matmul_fields(p));
    const std::vector<TensorSpec> specs = op.tensors(problem.get());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      memory_.push_back(device_.allocate(static_cast<std::size_t>(specs[i].bytes())));
      device_.fill(specs[i], seed, i, memory_.back());
      if (specs[i].name == "x") product_.x = memory_.back();
      if (specs[i].name == "w") product_.w = memory_.back();
      if (specs[i].name == "y") product_.y = memory_.back();
    }
    product_.operand = product_.result = p.dtype;
    product_.m = p.m;
    product_.n = p.n;
    product_.k = p.k;
    product_.w_is_kn = p.w_transposed;
    device_.synchronize();
  }
  ~Operands() {
    for (void* memory : memory_) device_.release(memory);
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  void launch(const Sm90Plan& plan, Stream stream) {
    std::byte output{};  // RoundedOutput has no members
    launch_sm90(kernel_of(plan), product_, plan, &output, stream);
  }

  std::vector<float> multiply(const Sm90Plan& plan) {
    const auto elements = static_cast<std::size_t>(p_.m * p_.n);
    INFEROMETER_CUDA_CHECK(cudaMemset(product_.y, 0xff, elements * 2));
    prepare_sm90(kernel_of(plan), plan);
    launch(plan, nullptr);
    INFEROMETER_CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<std::uint16_t> bits(elements);
    device_.copy_to_host(bits.data(), product_.y, elements * 2);
    std::vector<float> y(elements);
    std::transform(bits.begin(), bits.end(), y.begin(),
                   [&](std::uint16_t b) { return p_.dtype == Dtype::f16 ? f16_value(b) : bf16_value(b); });
    return y;
  }

 private:
  const void* kernel_of(const Sm90Plan& plan) const { return f16_sm90_kernel(p_.dtype, p_.w_transposed, plan.tile); }

  Device& device_;
  MatmulProblem p_;
  std::vector<void*> memory_;
  Sm90Product product_{};
};

// Runs all plans and holds them to the variant's own, which the judge has passed: both round the same sum once, after
// adding f32 terms in different orders, so they are at most one step of the type apart, plus the error of the
// additions, k roundings of partial sums no larger than a few sqrt(k).
void check_plans(Device& device, const MatmulProblem& p, std::uint64_t seed) {
  const VariantRun judged = run_matmul("cuda.f16_sm90", p, seed);
  INFO(to_string(matmul_fields(p)) << " seed=" << seed << ": " << judged.unsupported << judged.check.reason);
  REQUIRE(judged.check.passed);
  const std::vector<float>& expected = judged.outputs.at("y");
  const double sum_error = 8.0 * static_cast<double>(p.k) * 0x1p-24;
  Operands operands(device, p, seed);
  for (const Sm90Plan& plan : sm90_plans(p, current_gpu_limits())) {
    const std::vector<float> y = operands.multiply(plan);
    REQUIRE(y.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double error = std::abs(double{y[i]} - expected[i]);
      worst = std::max(worst, std::isfinite(error)
                                  ? error / (2 * unit_roundoff(p.dtype) * std::abs(expected[i]) + sum_error)
                                  : HUGE_VAL);
    }
    const Sm90Tile& tile = kSm90Tiles.at(static_cast<std::size_t>(plan.tile)).tile;
    INFO((tile.weights_are_a ? "W as A, " : "X as A, ")
         << tile.tile_b << " rows of B, split " << plan.work.split << ", whole tiles " << plan.work.whole << " of "
         << plan.work.order.tiles());
    CHECK(worst <= 1.0);
  }
}

TEMPLATE_TEST_CASE_SIG("matmul sm90: all plans agree around the edges of tiles, parts and slices", "[matmul][gpu]",
                       ((std::int64_t m), m), 1, 8, 17, 65, 129, 257) {
  const std::unique_ptr<Device> device = gpu();
  if (!current_gpu_limits().clusters) return;
  for (const std::int64_t n : thinned<std::int64_t>({1, 8, 72, 129, 1441}, 2)) {
    const std::int64_t k = m % 2 == 0 ? 1096 : 520;
    check_plans(*device, {.m = m, .n = n, .k = k, .dtype = n % 2 == 0 ? Dtype::f16 : Dtype::bf16}, 1);
  }
}

TEMPLATE_TEST_CASE_SIG("matmul sm90: all plans of aligned rows of Y agree, pairs of blocks among them", "[matmul][gpu]",
                       ((std::int64_t m), m), 65, 130, 257) {
  const std::unique_ptr<Device> device = gpu();
  if (!current_gpu_limits().clusters) return;
  for (const std::int64_t n : thinned<std::int64_t>({384, 720, 1448}, 2)) {
    const std::int64_t k = m % 2 == 0 ? 520 : 2056;  // fewer and more slices than any tile has stages
    check_plans(*device, {.m = m, .n = n, .k = k, .dtype = n == 384 ? Dtype::bf16 : Dtype::f16}, 1);
  }
}

TEMPLATE_TEST_CASE_SIG("matmul sm90: all plans of a W stored by columns agree", "[matmul][gpu][w_transposed]",
                       ((std::int64_t m), m), 1, 17, 65, 130, 257) {
  const std::unique_ptr<Device> device = gpu();
  if (!current_gpu_limits().clusters) return;
  for (const std::int64_t n : thinned<std::int64_t>({8, 72, 384, 1448}, 2)) {
    const std::int64_t k = m % 2 == 0 ? 520 : 2056;
    check_plans(*device, {.m = m, .n = n, .k = k, .w_transposed = true, .dtype = n == 384 ? Dtype::bf16 : Dtype::f16},
                1);
  }
}

// Of an H200 every tile, but those of pairs of blocks, is computed more than once by a block; the ring goes on from one
// to the next, with fewer slices than stages, and the last wave comes whole and in parts.
TEST_CASE("matmul sm90: all plans agree where blocks take several tiles", "[matmul][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  if (!current_gpu_limits().clusters) return;
  check_plans(*device, {.m = 1100, .n = 5760, .k = 136}, 1);
}

TEST_CASE("matmul sm90: all plans of a W stored by columns agree where blocks take several tiles",
          "[matmul][gpu][w_transposed]") {
  const std::unique_ptr<Device> device = gpu();
  if (!current_gpu_limits().clusters) return;
  check_plans(*device, {.m = 1100, .n = 5768, .k = 136, .w_transposed = true}, 1);
}

void check_random_plans(std::uint64_t count, double most_m, double most_n) {
  const std::unique_ptr<Device> device = gpu();
  if (!current_gpu_limits().clusters) return;
  const std::uint64_t first_seed = std::random_device{}();
  for (std::uint64_t seed = first_seed; seed < first_seed + count; seed += sanitizer_step(5)) {
    std::mt19937_64 random(seed);
    const auto log_uniform = [&](double most) {
      return static_cast<std::int64_t>(std::exp(std::uniform_real_distribution<double>(0, std::log(most))(random)));
    };
    const std::int64_t m = log_uniform(most_m);
    const std::int64_t n = log_uniform(most_n);
    const std::int64_t k = 8 * log_uniform(700);
    const bool is_kn = random() % 2 == 0;
    const std::int64_t unit = seed % 4 < 2 ? (is_kn ? 8 : 1) : 192;  // for tiles that want it even
    check_plans(*device,
                {.m = m,
                 .n = (n + unit - 1) / unit * unit,
                 .k = k,
                 .w_transposed = is_kn,
                 .dtype = seed % 2 == 0 ? Dtype::f16 : Dtype::bf16},
                seed);
  }
}

TEST_CASE("matmul sm90: all plans of random problems agree", "[matmul][gpu][large]") {
  check_random_plans(50, 600, 2500);
}

TEST_CASE("matmul sm90: all plans of small random problems agree", "[matmul][gpu]") {
  check_random_plans(20, 300, 600);
}

TEST_CASE("matmul sm90: k of real models that are no multiple of a power of two are right", "[matmul][gpu]") {
  if (!current_gpu_limits().clusters) return;
  for (const std::int64_t k : {29568, 10944, 27392}) {
    for (const std::int64_t m : {1, 33, 300}) {
      const MatmulProblem p{.m = m, .n = 1440, .k = k, .dtype = m == 33 ? Dtype::bf16 : Dtype::f16};
      const VariantRun run = run_matmul("cuda.f16_sm90", p);
      INFO(to_string(matmul_fields(p)) << ": " << run.unsupported << run.check.reason);
      CHECK(run.check.passed);
    }
  }
}

TEST_CASE("matmul sm90: what it cannot do it refuses in a sentence", "[matmul][gpu]") {
  const Variant& variant = *find_variant("matmul", "cuda.f16_sm90");
  const auto refusal = [&](const MatmulProblem& p) { return variant.unsupported(&p).value_or(""); };
  CHECK(refusal({.m = 16, .n = 64, .k = 100}) ==
        "k must be a multiple of 8, so that rows of X and W start on 16-byte boundaries, got 100");
  CHECK(refusal({.m = 16, .n = 64, .k = 128, .bits = 4}) == "bits must be 16, got 4");
  CHECK(refusal({.m = 16, .n = std::int64_t{1} << 31, .k = 8}) == "n must be at most 2147483135, got 2147483648");
  CHECK(refusal({.m = 16, .n = 100, .k = 128, .w_transposed = true}) ==
        "n must be a multiple of 8 with w_transposed, so that rows of W start on 16-byte boundaries, got 100");
  CHECK(refusal({.m = 16, .n = 64, .k = 128}).empty());
  CHECK(refusal({.m = 16, .n = 64, .k = 128, .w_transposed = true}).empty());
}

}  // namespace
}  // namespace inferometer::test
