// matmul / cuda.f16_sm80: mma.sync m16n8k16 fed by cp.async and ldmatrix, f16 and bf16, f32 accumulation.
//
// The kernel is mma_matmul.cuh; this file chooses a plan (mma_plan.hpp) and launches it. Compute bound for large m: at
// most 0.65 of the chip's dense rate on Hopper, whose full rate only wgmma reaches. For small m bound by reading W
// once.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/common/gpu_limits.hpp"
#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/mma_kernels.hpp"
#include "kernels/matmul/mma_plan.hpp"
#include "kernels/matmul/tile_table.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMaxK = (std::int64_t{1} << 31) - kTileK;  // positions along k are 32-bit in the kernel

std::optional<std::string> unsupported(const MatmulProblem& p) {
  if (p.bits != 16) return "bits must be 16, got " + std::to_string(p.bits);
  if (p.dtype != Dtype::f16 && p.dtype != Dtype::bf16)
    return "dtype must be f16 or bf16, got " + std::string(dtype_name(p.dtype));
  if (p.k % kChunkElems != 0)
    return "k must be a multiple of 8, so that rows of X and W start on 16-byte boundaries, got " + std::to_string(p.k);
  if (p.w_transposed && p.n % kChunkElems != 0)
    return "n must be a multiple of 8 with w_transposed, so that rows of W start on 16-byte boundaries, got " +
           std::to_string(p.n);
  if (p.k > kMaxK) return "k must be at most " + std::to_string(kMaxK) + ", got " + std::to_string(p.k);
  return std::nullopt;
}

MmaPlan plan_for_current_device(const MatmulProblem& p) { return make_mma_plan(p, current_gpu_limits()); }

std::size_t workspace_bytes(const MatmulProblem& p) { return plan_for_current_device(p).workspace_bytes; }

const TileShape& shape_of(const MmaPlan& plan) { return kTileTable.at(static_cast<std::size_t>(plan.shape)).shape; }

template <class T>
MmaKernel<T> kernel_of(const MatmulProblem& p, const MmaPlan& plan) {
  return p.w_transposed ? mma_kn_kernel<T>(plan.shape) : mma_kernel<T>(plan.shape);
}

std::shared_ptr<void> prepare(const MatmulProblem& p, const MatmulTensors&, const Launch&, Allocator&) {
  auto plan = std::make_shared<MmaPlan>(plan_for_current_device(p));
  with_half_type(p.dtype, [&]<class T>() {
    INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(kernel_of<T>(p, *plan), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                static_cast<int>(shape_of(*plan).smem_bytes())));
  });
  return plan;
}

void run(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch) {
  const MmaPlan& plan = *static_cast<const MmaPlan*>(launch.state);
  const TileShape& shape = shape_of(plan);
  with_half_type(p.dtype, [&]<class T>() {
    const MmaMatmulArgs<T> args = {
        .x = static_cast<const T*>(t.x),
        .w = static_cast<const T*>(t.w),
        .y = static_cast<T*>(t.y),
        .m = p.m,
        .n = p.n,
        .k = p.k,
        .split = plan.split,
        .shared = {.sums = reinterpret_cast<float4*>(launch.workspace.data()),
                   .arrivals = reinterpret_cast<unsigned*>(launch.workspace.data() + plan.arrivals_at)}};
    const auto blocks = static_cast<unsigned>(plan.split.blocks());  // Y with 2^31 tiles would fill no memory yet built
    kernel_of<T>(p, plan)<<<blocks, shape.threads(), shape.smem_bytes(), launch.stream>>>(args);
    INFEROMETER_CUDA_CHECK(cudaGetLastError());
  });
}

const RegisterVariant<Matmul> registered{{
    .name = "cuda.f16_sm80",
    .summary = "mma.sync, cp.async, shapes from 16x64 to 128x256, stream-K split of few tiles",
    .min_sm = 80,
    .unsupported = &unsupported,
    .workspace_bytes = &workspace_bytes,
    .prepare = &prepare,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
