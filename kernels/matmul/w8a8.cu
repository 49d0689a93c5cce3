// matmul / cuda.w8a8: int8 activations times int8 weights on Hopper's tensor cores, two launches:
//
//   X to codes and scales by token                                    quantize_activations.cu
//   Y = codes W^T, exact in int32, times both scales, rounded once    sm90_matmul.cuh with w8a8_output.cuh
//
// wgmma multiplies twice as many int8 as 16-bit elements in the same time and from the same bytes, so the plan is that
// of a 16-bit product of half the k. cuda.w8a8_product is the second launch alone: what is left when whatever came
// before the layer has written its activations as int8 already.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "harness/operator/variant.hpp"
#include "kernels/common/gpu_limits.hpp"
#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/quantize_activations.hpp"
#include "kernels/matmul/sm90_launch.hpp"
#include "kernels/matmul/sm90_plan.hpp"
#include "kernels/matmul/w8a8_kernels.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMaxSize = std::numeric_limits<std::int32_t>::max() - 512;  // coordinates, tiles past it too

std::optional<std::string> unsupported(const MatmulProblem& p) {
  if (p.activation_bits != 8) return "activation_bits must be 8, got " + std::to_string(p.activation_bits);
  if (p.k % kActivationElems != 0)
    return "k must be a multiple of 16, so that rows of codes start on 16-byte boundaries, got " + std::to_string(p.k);
  for (const auto& [name, size] : {std::pair("m", p.m), std::pair("n", p.n)})
    if (size > kMaxSize)
      return std::string(name) + " must be at most " + std::to_string(kMaxSize) + ", got " + std::to_string(size);
  return std::nullopt;
}

std::size_t workspace_bytes(const MatmulProblem& p) { return quantized_activation_bytes(p); }

const void* kernel_of(const MatmulProblem& p, const Sm90Plan& plan) {
  return with_half_type(p.dtype, [&]<class T>() { return w8a8_kernel<T>(plan.tile); });
}

Sm90Plan make_plan(const MatmulProblem& p) {
  const MatmulProblem half_k{.m = p.m, .n = p.n, .k = p.k / 2, .activation_bits = p.activation_bits};
  const Sm90Plan plan = make_sm90_plan(half_k, current_gpu_limits());
  prepare_sm90(kernel_of(p, plan), plan);
  return plan;
}

void multiply(const MatmulProblem& p, const MatmulTensors& t, const QuantizedActivations& x, const Sm90Plan& plan,
              Stream stream) {
  const Sm90Product product{
      .x = x.codes, .w = t.w, .y = t.y, .operand = Dtype::u8, .result = p.dtype, .m = p.m, .n = p.n, .k = p.k};
  with_half_type(p.dtype, [&]<class T>() {
    OutputScales<T> scales{.of_tokens = x.scales,
                           .of_features = static_cast<const T*>(t.scales),
                           .m = static_cast<std::uint32_t>(p.m),
                           .n = static_cast<std::uint32_t>(p.n)};
    launch_sm90(kernel_of(p, plan), product, plan, &scales, stream);
  });
}

std::shared_ptr<void> prepare(const MatmulProblem& p, const MatmulTensors&, const Launch&, Allocator&) {
  return std::make_shared<Sm90Plan>(make_plan(p));
}

void run(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch) {
  const QuantizedActivations x = place_activations(p, launch.workspace.data());
  launch_quantize_activations(p, t.x, x, launch.stream);
  multiply(p, t, x, *static_cast<const Sm90Plan*>(launch.state), launch.stream);
}

// cuda.w8a8_product: X stays quantised between launches.
struct QuantizedState {
  Sm90Plan plan;
  std::shared_ptr<void> memory;
  QuantizedActivations x;
};

std::shared_ptr<void> prepare_product(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch,
                                      Allocator& allocator) {
  auto memory = allocator.allocate(quantized_activation_bytes(p), "inputs");
  const QuantizedActivations x = place_activations(p, static_cast<std::byte*>(memory.get()));
  launch_quantize_activations(p, t.x, x, launch.stream);
  return std::make_shared<QuantizedState>(QuantizedState{.plan = make_plan(p), .memory = memory, .x = x});
}

void run_product(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch) {
  const auto& state = *static_cast<const QuantizedState*>(launch.state);
  multiply(p, t, state.x, state.plan, launch.stream);
}

const RegisterVariant<Matmul> registered{{
    .name = "cuda.w8a8",
    .summary = "activations to int8 by token, then int8 wgmma, TMA, scales in its epilogue",
    .min_sm = 90,
    .unsupported = &unsupported,
    .workspace_bytes = &workspace_bytes,
    .prepare = &prepare,
    .run = &run,
}};

const RegisterVariant<Matmul> registered_product{{
    .name = "cuda.w8a8_product",
    .summary = "the product of cuda.w8a8 alone: activations made int8 beforehand, untimed",
    .min_sm = 90,
    .unsupported = &unsupported,
    .prepare = &prepare_product,
    .run = &run_product,
}};

}  // namespace
}  // namespace inferometer
