// Every plan of cuda.w8a8, whatever the cost model thinks of it: sums are exact, so all give the same bits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/registry.hpp"
#include "kernels/common/gpu_limits.hpp"
#include "kernels/matmul/quantize_activations.hpp"
#include "kernels/matmul/sm90_launch.hpp"
#include "kernels/matmul/sm90_plan.hpp"
#include "kernels/matmul/sm90_tile_table.hpp"
#include "kernels/matmul/w8a8_kernels.hpp"
#include "tests/reference/matmul/quantized_problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/guarded_memory.hpp"
#include "tests/support/run_variant.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

MatmulProblem int8_problem(std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype = Dtype::f16) {
  return {.m = m, .n = n, .k = k, .bits = 8, .activation_bits = 8, .dtype = dtype};
}

// Of a product of 16 bits and half the k, as in w8a8.cu: as many bytes and as much time.
std::vector<Sm90Plan> plans_of(const MatmulProblem& p) {
  return sm90_plans({.m = p.m, .n = p.n, .k = p.k / 2, .activation_bits = 8}, current_gpu_limits());
}

// Inputs of one problem, filled as run_variant fills them and quantised, and a Y.
class Operands {
 public:
  Operands(Device& device, const MatmulProblem& p, std::uint64_t seed) : device_(device), memory_(device), p_(p) {
    const Operator& op = *find_operator("matmul");
    const auto problem = op.parse(quantized_fields(p));
    const std::vector<TensorSpec> specs = op.tensors(problem.get());
    const void* x = nullptr;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      owners_.push_back(memory_.allocate(static_cast<std::size_t>(specs[i].bytes()), specs[i].name));
      void* const data = owners_.back().get();
      device_.fill(specs[i], seed, i, data);
      if (specs[i].name == "x") x = data;
      if (specs[i].name == "w") product_.w = data;
      if (specs[i].name == "scales") scales_ = data;
      if (specs[i].name == "y") product_.y = data;
    }
    owners_.push_back(memory_.allocate(quantized_activation_bytes(p), "codes and scales of X"));
    x_ = place_activations(p, static_cast<std::byte*>(owners_.back().get()));
    launch_quantize_activations(p, x, x_, stream());
    product_.x = x_.codes;
    product_.operand = Dtype::u8;
    product_.result = p.dtype;
    product_.m = p.m;
    product_.n = p.n;
    product_.k = p.k;
  }
  ~Operands() { CHECK(memory_.violations() == std::vector<std::string>()); }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  // Y, over bytes of NaNs.
  std::vector<std::byte> multiply(const Sm90Plan& plan) {
    std::vector<std::byte> y(static_cast<std::size_t>(p_.m * p_.n) * 2);
    INFEROMETER_CUDA_CHECK(cudaMemsetAsync(product_.y, 0xff, y.size(), stream()));
    if (p_.dtype == Dtype::f16) {
      launch<__half>(plan);
    } else {
      launch<__nv_bfloat16>(plan);
    }
    device_.synchronize();
    device_.copy_to_host(y.data(), product_.y, y.size());
    return y;
  }

 private:
  Stream stream() const { return device_.launch().stream; }

  template <class T>
  void launch(const Sm90Plan& plan) {
    const void* const kernel = w8a8_kernel<T>(plan.tile);
    REQUIRE(kernel != nullptr);
    OutputScales<T> scales{.of_tokens = x_.scales,
                           .of_features = static_cast<const T*>(scales_),
                           .m = static_cast<std::uint32_t>(p_.m),
                           .n = static_cast<std::uint32_t>(p_.n)};
    prepare_sm90(kernel, plan);
    launch_sm90(kernel, product_, plan, &scales, stream());
  }

  Device& device_;
  GuardedMemory memory_;
  MatmulProblem p_;
  std::vector<std::shared_ptr<void>> owners_;
  QuantizedActivations x_{};
  const void* scales_ = nullptr;
  Sm90Product product_{};
};

// Holds all plans to the variant's own, which the judge has passed.
void check_plans(const MatmulProblem& p, std::uint64_t seed = 1) {
  const VariantRun judged = run_variant("matmul", "cuda.w8a8", quantized_fields(p), seed);
  INFO(to_string(quantized_fields(p)) << " seed=" << seed << ": " << judged.unsupported << judged.check.reason);
  REQUIRE(judged.check.passed);
  const std::unique_ptr<Device> device = gpu();
  Operands operands(*device, p, seed);
  for (const Sm90Plan& plan : plans_of(p)) {
    const Sm90Tile& tile = kSm90Tiles.at(static_cast<std::size_t>(plan.tile)).tile;
    INFO((tile.weights_are_a ? "W as A, " : "X as A, ")
         << tile.tile_b << " rows of B, split " << plan.work.split << ", whole tiles " << plan.work.whole << " of "
         << plan.work.order.tiles());
    CHECK(operands.multiply(plan) == judged.raw.at("y"));
  }
}

// n of 384 is a multiple of the tiles of pairs of blocks, which ask for that.
const std::vector<std::int64_t> kOutputs = {1, 8, 72, 384, 1441, 1448};

// Ends within a slice. Even m have more slices than any tile has stages, odd ones fewer than some.
std::int64_t k_of(std::int64_t m) { return m % 2 == 0 ? 4112 : 1040; }

TEMPLATE_TEST_CASE_SIG("matmul int8: all plans give the same bits around the edges of tiles, parts and slices",
                       "[matmul][int8][gpu]", ((std::int64_t m), m), 1, 8, 17, 65, 130, 257) {
  if (!current_gpu_limits().clusters) return;
  for (std::size_t i = 0; i < kOutputs.size(); i += sanitizer_step(3)) {
    const std::int64_t n = kOutputs[i];
    check_plans(int8_problem(m, n, k_of(m), (m + n) % 2 == 0 ? Dtype::bf16 : Dtype::f16));
  }
}

TEST_CASE("matmul int8: plans of these problems take every tile that int8 has", "[matmul][int8][gpu]") {
  if (!current_gpu_limits().clusters) return;
  std::set<int> taken;
  for (const std::int64_t n : kOutputs)
    for (const Sm90Plan& plan : plans_of(int8_problem(257, n, k_of(257)))) taken.insert(plan.tile);
  for (int i = 0; i < static_cast<int>(kSm90Tiles.size()); ++i) {
    INFO("tile " << i);
    CHECK(taken.contains(i) != kSm90Tiles.at(static_cast<std::size_t>(i)).tile.saves_power());
  }
}

// Of an H200 every tile, but those of pairs of blocks, is computed more than once by a block; the ring goes on from one
// to the next, with fewer slices than stages, and the last wave comes whole and in parts.
TEST_CASE("matmul int8: all plans give the same bits where blocks take several tiles", "[matmul][int8][gpu]") {
  if (!current_gpu_limits().clusters) return;
  check_plans(int8_problem(1100, 5760, 272));
}

}  // namespace
}  // namespace inferometer::test
