#include "kernels/matmul/f16_sm90_ends.hpp"

#include <cstddef>

#include "kernels/common/gpu_limits.hpp"
#include "kernels/matmul/f16_sm90_kernels.hpp"
#include "kernels/matmul/sm90_launch.hpp"
#include "kernels/matmul/sm90_plan.hpp"
#include "kernels/matmul/sm90_tile.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kPartRows = 16;  // of W, a warp's: one sum of squares

Sm90Product product_of(const MatmulProblem& p, const MatmulTensors& t) {
  return {.x = t.x, .w = t.w, .y = t.y, .operand = Dtype::f16, .result = Dtype::f16, .m = p.m, .n = p.n, .k = p.k};
}

std::shared_ptr<void> prepare(const MatmulProblem& p, const void* (*kernel)(int)) {
  const GpuLimits gpu = current_gpu_limits();
  auto plan =
      std::make_shared<Sm90Plan>(f16_has_late_norm(p) ? make_sm90_late_norm_plan(p, gpu) : make_sm90_plan(p, gpu));
  prepare_sm90(kernel(plan->tile), *plan);
  return plan;
}

}  // namespace

bool f16_has_late_norm(const MatmulProblem& p) { return p.m <= kSm90LateNormTokens; }

std::shared_ptr<void> prepare_gated_f16(const MatmulProblem& p) {
  require_gated_rows(p.n);
  return prepare(p, &gated_f16_sm90_kernel);
}

void run_gated_f16(const MatmulProblem& p, const MatmulTensors& t, const GatedEnd& end, const Launch& launch) {
  require_late_norm(end.norm.squares == nullptr || f16_has_late_norm(p), p.m);
  const auto& plan = *static_cast<const Sm90Plan*>(launch.state);
  Sm90Product product = product_of(p, t);
  product.gated = true;
  GatedEnd output = end;
  launch_sm90(gated_f16_sm90_kernel(plan.tile), product, plan, &output, launch.stream);
}

int f16_residual_parts(const MatmulProblem& p) { return static_cast<int>((p.n + kPartRows - 1) / kPartRows); }

std::shared_ptr<void> prepare_residual_f16(const MatmulProblem& p) {
  require_late_norm(f16_has_late_norm(p), p.m);
  require_residual_columns(p.n);
  return prepare(p, &residual_f16_sm90_kernel);
}

void run_residual_f16(const MatmulProblem& p, const MatmulTensors& t, const ResidualEnd& end, const Launch& launch) {
  const auto& plan = *static_cast<const Sm90Plan*>(launch.state);
  ResidualEnd output = end;
  launch_sm90(residual_f16_sm90_kernel(plan.tile), product_of(p, t), plan, &output, launch.stream);
}

}  // namespace inferometer
