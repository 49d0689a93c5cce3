// Candidates as variants of their own. p: programmatic stream serialization, h: at home, a: ahead.
#include <algorithm>
#include <string>

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/tensor_map.hpp"
#include "kernels/matmul/packing_kernel.hpp"
#include "kernels/matmul/weight_only_few_tokens.cuh"
#include "kernels/matmul/weight_only_plan.hpp"
#include "kernels/matmul/weight_only_wgmma.cuh"

namespace inferometer {
namespace {

constexpr GpuLimits kGpu{.sm_count = 132, .block_smem_bytes = 232448, .clusters = true};

struct Config {
  WeightOnlyPlan plan;
  const void* kernel = nullptr;  // none: cannot do it
  bool dependent = false;
  PackedWeights weights{};
  std::shared_ptr<void> memory{};
};

template <int kTokenTiles, FewTokensOptions kOptions>
struct Few {
  template <int kBits>
  static Config config(const MatmulProblem& p) {
    const PackedShape weights = packed_shape(p);
    WeightOnlyPlan plan = make_weight_only_plan(weights, std::min<std::int64_t>(p.m, 16), kGpu);
    if (!plan.few_tokens) plan = {.few_tokens = true, .tiles = 4, .blocks = (p.n + 63) / 64};
    constexpr FewTokensShape kShape = {kTokenTiles, kOptions.warps, 4};
    plan.tokens = static_cast<int>(p.m);
    plan.threads = kOptions.warps * 32;
    plan.stages = kShape.stages(plan.tiles, weights.tile_bytes(), plan.parts, kGpu.block_smem_bytes);
    plan.smem_bytes = kShape.smem_bytes(plan.tiles, weights.tile_bytes(), plan.parts, plan.stages);
    if (plan.stages == 0) return {};
    const void* kernel = nullptr;
    if (plan.tiles <= 4) {
      kernel = (const void*)&few_tokens_kernel<__half, kBits, true, kTokenTiles, 4, kOptions.code()>;
    } else if constexpr (kTokenTiles * kOptions.warps <= 32) {
      kernel = (const void*)&few_tokens_kernel<__half, kBits, true, kTokenTiles, 8, kOptions.code()>;
    }
    return {plan, kernel, kOptions.dependent};
  }
};

template <int kTokens, int kBands, WeightOnlyWgmmaOptions kOptions>
struct Wide {
  template <int kBits>
  static Config config(const MatmulProblem& p) {
    constexpr WeightOnlyWgmmaShape kShape = {kBits, kTokens, kBands, kOptions.warpgroups};
    WeightOnlyPlan plan = {.tokens = kTokens, .order_band = 12, .threads = kShape.threads()};
    plan.smem_bytes = kShape.smem_bytes();
    plan.tiles = static_cast<int>((p.n + kBands * kBandRows - 1) / (kBands * kBandRows));
    plan.token_tiles = static_cast<int>((p.m + kTokens - 1) / kTokens);
    const int tiles = plan.tiles * plan.token_tiles;
    while (plan.parts < 4 && tiles * plan.parts * 2 <= (plan.parts == 1 ? 132 : 120)) plan.parts *= 2;
    plan.blocks = plan.parts > 1 ? tiles * plan.parts : std::min(tiles, kGpu.sm_count);
    return {plan, (const void*)&weight_only_wgmma_kernel<__half, kBits, true, kTokens, kBands, kOptions.code()>,
            kOptions.dependent};
  }
};

template <int kBits, class How, int kFrom, int kTo>
std::optional<std::string> unsupported(const MatmulProblem& p) {
  if (p.bits == kBits && p.activation_bits == 16 && p.dtype == Dtype::f16 && p.k % 8 == 0 && p.m >= kFrom &&
      p.m <= kTo && packed_shape(p).is_plain() && How::template config<kBits>(p).kernel != nullptr)
    return std::nullopt;
  return "not what it is for";
}

template <int kBits, class How>
std::shared_ptr<void> prepare(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch, Allocator& memory) {
  auto c = std::make_shared<Config>(How::template config<kBits>(p));
  c->memory = pack_weights(p, t, launch.stream, memory);
  c->weights = {static_cast<const unsigned char*>(c->memory.get()), packed_shape(p)};
  cudaFuncSetAttribute(c->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, c->plan.smem_bytes);
  cudaStreamSynchronize(launch.stream);
  return c;
}

void run(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch) {
  const Config& c = *static_cast<const Config*>(launch.state);
  const WeightOnlyPlan& plan = c.plan;
  const auto m = static_cast<unsigned>(p.m);
  const auto k = static_cast<std::uint64_t>(p.k);
  const auto tokens = static_cast<unsigned>(plan.tokens);
  CUtensorMap x = make_tensor_map(
      p.dtype, t.x, TensorMapShape<2>{.sizes = {k, m}, .stride_bytes = {k * 2}, .box = {kSliceK, tokens}});
  auto* const y = static_cast<__half*>(t.y);
  const int n = static_cast<int>(p.n);
  FewTokensArgs<__half> few(c.weights, static_cast<const __half*>(t.x), y, m, plan.tiles, plan.parts, plan.stages, m);
  WeightOnlyWgmmaArgs<__half> wide = {c.weights,        y,  static_cast<int>(m), n, plan.tiles,
                                      plan.token_tiles, 12, plan.parts};
  void* arguments[] = {plan.few_tokens ? static_cast<void*>(&few) : &wide, &x};
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {.x = static_cast<unsigned>(plan.parts), .y = 1, .z = 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(plan.blocks);
  config.blockDim = static_cast<unsigned>(plan.threads);
  config.dynamicSmemBytes = static_cast<std::size_t>(plan.smem_bytes);
  config.stream = launch.stream;
  config.attrs = attributes + (plan.parts > 1 ? 0 : 1);
  config.numAttrs = (plan.parts > 1 ? 1 : 0) + (c.dependent ? 1 : 0);
  INFEROMETER_CUDA_CHECK(cudaLaunchKernelExC(&config, c.kernel, arguments));
}

template <int kBits, class How, int kFrom, int kTo>
void add_bits(const std::string& name) {
  RegisterVariant(VariantSpec<Matmul>{.name = name,
                                      .summary = "candidate",
                                      .min_sm = 90,
                                      .unsupported = &unsupported<kBits, How, kFrom, kTo>,
                                      .prepare = &prepare<kBits, How>,
                                      .run = &run});
}

template <class How, int kFrom, int kTo>
void add(const std::string& name) {
  add_bits<4, How, kFrom, kTo>("cuda.w4a16_" + name);
  add_bits<8, How, kFrom, kTo>("cuda.w8a16_" + name);
}

using FewO = FewTokensOptions;
using WideO = WeightOnlyWgmmaOptions;

const bool registered = [] {
  add<Few<1, FewO{16, 0, true}>, 1, 8>("few1_w16p");
  add<Few<1, FewO{8, 4, true}>, 1, 8>("few1_a4w8p");
  add<Few<2, FewO{16, 0, true}>, 9, 16>("few2_w16p");
  add<Few<2, FewO{8, 2, true}>, 9, 16>("few2_a2w8p");
  add<Few<2, FewO{8, 4, true}>, 9, 16>("few2_a4w8p");
  add<Few<4, FewO{8, 2, true}>, 17, 32>("few4_a2w8p");
  add<Few<4, FewO{12, 2, true}>, 17, 32>("few4_a2w12p");
  add<Wide<32, 1, WideO{true, true}>, 17, 32>("32x1hp");
  add<Wide<32, 1, WideO{true, true, 48}>, 17, 32>("32x1hpa");
  add<Wide<32, 1, WideO{true, true, 48, 5}>, 17, 32>("32x1hpa5");
  add<Wide<64, 1, WideO{true, true}>, 33, 64>("64x1hp");
  add<Wide<64, 1, WideO{true, true, 48}>, 33, 64>("64x1hpa");
  add<Wide<64, 2, WideO{true, true, 48}>, 33, 64>("64x2hpa");
  add<Wide<128, 2, WideO{true, true}>, 65, 512>("128x2hp");
  add<Wide<256, 2, WideO{true, true}>, 129, 1 << 30>("256x2hp");
  return true;
}();

}  // namespace
}  // namespace inferometer
