// matmul / cuda.w8a16: INT8 weights, f16 or bf16 activations, f32 accumulation, for Hopper.
//
// Weights are re-ordered once, in `prepare` (packing.hpp). Up to 16 tokens are bound by reading them, the work of
// weight_only_few_tokens.cuh; more go through wgmma (weight_only_wgmma.cuh). weight_only_plan.hpp chooses.
#include "kernels/matmul/weight_only_variant.hpp"

namespace inferometer {
namespace {

std::optional<std::string> unsupported(const MatmulProblem& p) { return weight_only_unsupported(p, 8); }

const RegisterVariant<Matmul> registered{{
    .name = "cuda.w8a16",
    .summary = "INT8 weights to fragments on the way; mma.sync up to 16 tokens, wgmma above",
    .min_sm = 90,
    .unsupported = &unsupported,
    .prepare = &prepare_weight_only,
    .run = &run_weight_only,
}};

}  // namespace
}  // namespace inferometer
