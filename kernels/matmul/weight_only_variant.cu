#include "kernels/matmul/weight_only_variant.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
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

template <class Kernel, class... Args>
void launch_kernel(Kernel kernel, const WeightOnlyPlan& plan, Stream stream, const Args&... args) {
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
  INFEROMETER_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, args...));
}

template <class T, int kBits, class End>
FewTokensKernel<T, End> few_tokens_kernel_of(const State& state) {
  const WeightOnlyPlan& plan = state.plan;
  if constexpr (std::is_same_v<End, GatedEnd>) {
    return gated_few_tokens_kernel<kBits>(plan.token_tiles, plan.tiles);
  } else if constexpr (std::is_same_v<End, ResidualEnd>) {
    return residual_few_tokens_kernel<kBits>(plan.token_tiles, plan.tiles);
  } else {
    return few_tokens_kernel_for<T, kBits>(state.weights.shape.is_plain(), plan.token_tiles, plan.tiles);
  }
}

template <class T, int kBits, class End>
WeightOnlyWgmmaKernel<T> wgmma_kernel_of(const State& state) {
  if constexpr (std::is_same_v<End, GatedEnd>) {
    return gated_weight_only_wgmma_kernel<kBits>(state.plan.shape);
  } else {
    return weight_only_wgmma_kernel_for<T, kBits>(state.weights.shape.is_plain(), state.plan.shape);
  }
}

template <class T, int kBits, class End>
void allow_shared_memory(const State& state) {
  const WeightOnlyPlan& plan = state.plan;
  const auto* kernel = plan.few_tokens ? reinterpret_cast<const void*>(few_tokens_kernel_of<T, kBits, End>(state))
                                       : reinterpret_cast<const void*>(wgmma_kernel_of<T, kBits, End>(state));
  require_sm90_code(kernel, "the weight-only matmul kernel");
  // Of the function, which problems of other sizes share: never less than what another one was prepared with.
  cudaFuncAttributes allowed{};
  INFEROMETER_CUDA_CHECK(cudaFuncGetAttributes(&allowed, kernel));
  if (plan.smem_bytes > allowed.maxDynamicSharedSizeBytes)
    INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.smem_bytes));
}

template <class T, int kBits, class End>
void launch(const State& state, const MatmulProblem& p, const MatmulTensors& t, const End& end, Stream stream) {
  const WeightOnlyPlan& plan = state.plan;
  // Rows past the end of X cost the copy engine more than those that are there: no box has any.
  if (plan.few_tokens) {
    const FewTokensArgs<T> args(state.weights, static_cast<const T*>(t.x), static_cast<T*>(t.y), static_cast<int>(p.m),
                                plan.tiles, plan.parts, plan.stages);
    launch_kernel(few_tokens_kernel_of<T, kBits, End>(state), plan, stream, args, map_of_x(p, t, p.m), end);
  } else {
    const WeightOnlyWgmmaArgs<T> args(state.weights, static_cast<T*>(t.y), static_cast<int>(p.m), plan.tiles,
                                      plan.token_tiles, plan.tokens, plan.order_band, plan.parts);
    const CUtensorMap last = map_of_x(p, t, args.last_tokens);
    const WeightOnlyWgmmaX x = {.whole = plan.token_tiles > 1 ? map_of_x(p, t, plan.tokens) : last, .last = last};
    launch_kernel(wgmma_kernel_of<T, kBits, End>(state), plan, stream, args, x);
  }
}

// Calls f.template operator()<kBits>() for the problem's bits.
template <class F>
void with_bits(const MatmulProblem& p, F&& f) {
  if (p.bits == 4) {
    f.template operator()<4>();
  } else {
    f.template operator()<8>();
  }
}

// Calls f.template operator()<T, kBits>() for the problem's type and bits.
template <class F>
void with_format(const MatmulProblem& p, F&& f) {
  with_half_type(p.dtype, [&]<class T>() { with_bits(p, [&]<int kBits>() { f.template operator()<T, kBits>(); }); });
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
  with_format(p, [&]<class T, int kBits>() { allow_shared_memory<T, kBits, RoundedEnd>(*state); });
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch.stream));  // launches may come on another stream
  return state;
}

std::shared_ptr<void> replan_weight_only(const MatmulProblem& p, const std::shared_ptr<void>& packed,
                                         WeightOnlyEnd end) {
  auto state = std::make_shared<State>(*static_cast<const State*>(packed.get()));
  state->plan = make_weight_only_plan(state->weights.shape, p.m, current_gpu_limits());
  if (end == WeightOnlyEnd::rounded) {
    with_format(p, [&]<class T, int kBits>() { allow_shared_memory<T, kBits, RoundedEnd>(*state); });
    return state;
  }
  if (p.dtype != Dtype::f16 || !state->weights.shape.is_plain())
    throw std::invalid_argument("a product with an end: f16 and symmetric groups of 64 or more only");
  if (end == WeightOnlyEnd::gated) {
    require_gated_rows(p.n);
    with_bits(p, [&]<int kBits>() { allow_shared_memory<__half, kBits, GatedEnd>(*state); });
  } else {
    require_late_norm(state->plan.few_tokens, p.m);
    require_residual_columns(p.n);
    with_bits(p, [&]<int kBits>() { allow_shared_memory<__half, kBits, ResidualEnd>(*state); });
  }
  return state;
}

bool weight_only_has_late_norm(const MatmulProblem& p, const std::shared_ptr<void>& packed) {
  const PackedShape& shape = static_cast<const State*>(packed.get())->weights.shape;
  return make_weight_only_plan(shape, p.m, current_gpu_limits()).few_tokens;
}

std::span<const std::byte> packed_weights(const std::shared_ptr<void>& state) {
  const PackedWeights& weights = static_cast<const State*>(state.get())->weights;
  return {reinterpret_cast<const std::byte*>(weights.tiles), static_cast<std::size_t>(weights.shape.bytes())};
}

void run_weight_only(const MatmulProblem& p, const MatmulTensors& t, const Launch& on) {
  const State& state = *static_cast<const State*>(on.state);
  with_format(p, [&]<class T, int kBits>() { launch<T, kBits>(state, p, t, RoundedEnd{}, on.stream); });
}

void run_weight_only(const MatmulProblem& p, const MatmulTensors& t, const GatedEnd& end, const Launch& on) {
  const State& state = *static_cast<const State*>(on.state);
  require_late_norm(end.norm.squares == nullptr || state.plan.few_tokens, p.m);
  with_bits(p, [&]<int kBits>() { launch<__half, kBits>(state, p, t, end, on.stream); });
}

void run_weight_only(const MatmulProblem& p, const MatmulTensors& t, const ResidualEnd& end, const Launch& on) {
  const State& state = *static_cast<const State*>(on.state);
  with_bits(p, [&]<int kBits>() { launch<__half, kBits>(state, p, t, end, on.stream); });
}

int weight_only_residual_parts(const std::shared_ptr<void>& state) {
  return static_cast<int>(static_cast<const State*>(state.get())->plan.blocks);
}

}  // namespace inferometer
