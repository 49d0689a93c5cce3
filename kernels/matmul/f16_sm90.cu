// matmul / cuda.f16_sm90: wgmma fed by the copy engine, f16 and bf16, f32 accumulation.
//
// The kernel is sm90_matmul.cuh; this file chooses a plan (sm90_plan.hpp) and launches it. No workspace: blocks that
// share a tile of Y are one cluster, and meet in its shared memory.
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
#include "kernels/matmul/f16_sm90_kernels.hpp"
#include "kernels/matmul/sm90_launch.hpp"
#include "kernels/matmul/sm90_plan.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kCopyElems = 8;  // 16 bytes: what the copy engine's rows are multiples of
constexpr std::int64_t kMaxSize = std::numeric_limits<std::int32_t>::max() - 512;  // its coordinates, tiles past it too

std::optional<std::string> unsupported(const MatmulProblem& p) {
  if (p.bits != 16) return "bits must be 16, got " + std::to_string(p.bits);
  if (p.dtype != Dtype::f16 && p.dtype != Dtype::bf16)
    return "dtype must be f16 or bf16, got " + std::string(dtype_name(p.dtype));
  if (p.k % kCopyElems != 0)
    return "k must be a multiple of 8, so that rows of X and W start on 16-byte boundaries, got " + std::to_string(p.k);
  if (p.w_transposed && p.n % kCopyElems != 0)
    return "n must be a multiple of 8 with w_transposed, so that rows of W start on 16-byte boundaries, got " +
           std::to_string(p.n);
  for (const auto& [name, size] : {std::pair("m", p.m), std::pair("n", p.n), std::pair("k", p.k)})
    if (size > kMaxSize)
      return std::string(name) + " must be at most " + std::to_string(kMaxSize) + ", got " + std::to_string(size);
  return std::nullopt;
}

std::shared_ptr<void> prepare(const MatmulProblem& p, const MatmulTensors&, const Launch&, Allocator&) {
  auto plan = std::make_shared<Sm90Plan>(make_sm90_plan(p, current_gpu_limits()));
  prepare_sm90(f16_sm90_kernel(p.dtype, p.w_transposed, plan->tile), *plan);
  return plan;
}

void run(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch) {
  const auto& plan = *static_cast<const Sm90Plan*>(launch.state);
  const Sm90Product product{.x = t.x,
                            .w = t.w,
                            .y = t.y,
                            .operand = p.dtype,
                            .result = p.dtype,
                            .m = p.m,
                            .n = p.n,
                            .k = p.k,
                            .w_is_kn = p.w_transposed};
  std::byte output{};  // RoundedOutput has no members
  launch_sm90(f16_sm90_kernel(p.dtype, p.w_transposed, plan.tile), product, plan, &output, launch.stream);
}

const RegisterVariant<Matmul> registered{{
    .name = "cuda.f16_sm90",
    .summary = "wgmma, TMA, warp roles; tiles from 128x16 to 256x192, clusters that share out k or fetch W together",
    .min_sm = 90,
    .unsupported = &unsupported,
    .prepare = &prepare,
    .run = &run,
}};

}  // namespace

const void* f16_sm90_kernel(Dtype dtype, bool w_is_kn, int tile) {
  return with_half_type(dtype,
                        [&]<class T>() { return w_is_kn ? f16_sm90_kn_kernel<T>(tile) : f16_sm90_kernel<T>(tile); });
}

}  // namespace inferometer
