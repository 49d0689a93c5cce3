#include "kernels/matmul/weight_only_variant.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/gpu_limits.hpp"
#include "kernels/common/half_ops.cuh"
#include "kernels/common/sm90_only.hpp"
#include "kernels/common/tensor_map.hpp"
#include "kernels/matmul/packing_kernel.hpp"
#include "kernels/matmul/weight_only_kernels.hpp"
#include "kernels/matmul/weight_only_plan.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 30;  // m, n and k: positions along them are 32-bit in the kernels
constexpr int kAlignedElems = 8;                          // 16 bytes

struct State {
  PackedWeights weights;
  std::shared_ptr<void> memory;
  WeightOnlyPlan plan;
};

// X as the copy engine reads it: boxes of a slice of k and `tokens` tokens.
CUtensorMap map_of_x(const MatmulProblem& p, const MatmulTensors& t, std::int64_t tokens) {
  return make_tensor_map(p.dtype, t.x,
                         TensorMapShape<2>{.sizes = {static_cast<std::uint64_t>(p.k), static_cast<std::uint64_t>(p.m)},
                                           .stride_bytes = {static_cast<std::uint64_t>(p.k) * 2},
                                           .box = {kSliceK, static_cast<std::uint32_t>(tokens)}});
}

template <class Kernel, class Args, class X>
void launch_kernel(Kernel kernel, const WeightOnlyPlan& plan, const Args& args, const X& x, Stream stream) {
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {.x = static_cast<unsigned>(plan.parts), .y = 1, .z = 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(plan.blocks));
  config.blockDim = dim3(static_cast<unsigned>(plan.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(plan.smem_bytes);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = plan.parts > 1 ? 1 : 0;
  INFEROMETER_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, args, x));
}

template <class T, int kBits>
void allow_shared_memory(const State& state) {
  const WeightOnlyPlan& plan = state.plan;
  const bool plain = state.weights.shape.is_plain();
  const auto* kernel =
      plan.few_tokens
          ? reinterpret_cast<const void*>(few_tokens_kernel_for<T, kBits>(plain, plan.token_tiles, plan.tiles))
          : reinterpret_cast<const void*>(weight_only_wgmma_kernel_for<T, kBits>(plain, plan.shape));
  require_sm90_code(kernel, "the weight-only matmul kernel");
  // Of the function, which problems of other sizes share: never less than what another one was prepared with.
  cudaFuncAttributes allowed{};
  INFEROMETER_CUDA_CHECK(cudaFuncGetAttributes(&allowed, kernel));
  if (plan.smem_bytes > allowed.maxDynamicSharedSizeBytes)
    INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.smem_bytes));
}

template <class T, int kBits>
void launch(const State& state, const MatmulProblem& p, const MatmulTensors& t, Stream stream) {
  const WeightOnlyPlan& plan = state.plan;
  const bool plain = state.weights.shape.is_plain();
  // Rows past the end of X cost the copy engine more than those that are there: no box has any.
  if (plan.few_tokens) {
    const FewTokensArgs<T> args(state.weights, static_cast<const T*>(t.x), static_cast<T*>(t.y), static_cast<int>(p.m),
                                plan.tiles, plan.parts, plan.stages);
    launch_kernel(few_tokens_kernel_for<T, kBits>(plain, plan.token_tiles, plan.tiles), plan, args, map_of_x(p, t, p.m),
                  stream);
  } else {
    const WeightOnlyWgmmaArgs<T> args(state.weights, static_cast<T*>(t.y), static_cast<int>(p.m), plan.tiles,
                                      plan.token_tiles, plan.tokens, plan.order_band, plan.parts);
    const CUtensorMap last = map_of_x(p, t, args.last_tokens);
    const WeightOnlyWgmmaX x = {.whole = plan.token_tiles > 1 ? map_of_x(p, t, plan.tokens) : last, .last = last};
    launch_kernel(weight_only_wgmma_kernel_for<T, kBits>(plain, plan.shape), plan, args, x, stream);
  }
}

// Calls f.template operator()<T, kBits>() for the problem's type and bits.
template <class F>
void with_format(const MatmulProblem& p, F&& f) {
  with_half_type(p.dtype, [&]<class T>() {
    if (p.bits == 4) {
      f.template operator()<T, 4>();
    } else {
      f.template operator()<T, 8>();
    }
  });
}

}  // namespace

std::optional<std::string> weight_only_unsupported(const MatmulProblem& p, int bits) {
  if (p.bits != bits) return "bits must be " + std::to_string(bits) + ", got " + std::to_string(p.bits);
  if (p.activation_bits != 16) return "activation_bits must be 16, got " + std::to_string(p.activation_bits);
  if (p.k % kAlignedElems != 0)
    return "k must be a multiple of 8, so that rows of X start on 16-byte boundaries, got " + std::to_string(p.k);
  for (const auto& [name, size] : {std::pair("m", p.m), std::pair("n", p.n), std::pair("k", p.k)})
    if (size > kMaxSize)
      return std::string(name) + " must be at most " + std::to_string(kMaxSize) + ", got " + std::to_string(size);
  return std::nullopt;
}

std::shared_ptr<void> prepare_weight_only(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch,
                                          Allocator& allocator) {
  auto state = std::make_shared<State>();
  state->memory = pack_weights(p, t, launch.stream, allocator);
  state->weights = {.tiles = static_cast<const unsigned char*>(state->memory.get()), .shape = packed_shape(p)};
  state->plan = make_weight_only_plan(state->weights.shape, p.m, current_gpu_limits());
  with_format(p, [&]<class T, int kBits>() { allow_shared_memory<T, kBits>(*state); });
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch.stream));  // launches may come on another stream
  return state;
}

std::shared_ptr<void> replan_weight_only(const MatmulProblem& p, const std::shared_ptr<void>& packed) {
  auto state = std::make_shared<State>(*static_cast<const State*>(packed.get()));
  state->plan = make_weight_only_plan(state->weights.shape, p.m, current_gpu_limits());
  with_format(p, [&]<class T, int kBits>() { allow_shared_memory<T, kBits>(*state); });
  return state;
}

std::span<const std::byte> packed_weights(const std::shared_ptr<void>& state) {
  const PackedWeights& weights = static_cast<const State*>(state.get())->weights;
  return {reinterpret_cast<const std::byte*>(weights.tiles), static_cast<std::size_t>(weights.shape.bytes())};
}

void run_weight_only(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch_on) {
  const State& state = *static_cast<const State*>(launch_on.state);
  with_format(p, [&]<class T, int kBits>() { launch<T, kBits>(state, p, t, launch_on.stream); });
}

}  // namespace inferometer
