// attention_prefill / cuda.flash_sm80: FlashAttention forward on mma.sync, for every GPU from sm_80 on.
//
//   in   q       [batch, q_len, q_heads, head_dim]     f16, bf16
//        k, v    [batch, kv_len, kv_heads, head_dim]   as q
//   out  o       [batch, q_len, q_heads, head_dim]     as q
//        lse     [batch, q_heads, q_len]               f32
//
// Compute bound: q_len x kv_len scores are made and used in registers, and memory sees only the tensors above.
// After: Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", NeurIPS 2022;
// Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023.
#include <cstdint>
#include <optional>
#include <string>

#include "harness/operator/variant.hpp"
#include "kernels/attention_prefill/flash_sm80_params.hpp"
#include "kernels/attention_prefill/prefill_limits.hpp"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMaxHeadDim = 256;
constexpr std::int64_t kLeastTileQ = 64;  // queries of a thread block, in the smallest configuration
constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;

std::optional<std::string> unsupported(const AttentionPrefillProblem& p) {
  if (p.head_dim % 8 != 0 || p.head_dim > kMaxHeadDim)
    return "head_dim must be a multiple of 8 up to " + std::to_string(kMaxHeadDim) + ", got " +
           std::to_string(p.head_dim);
  if (auto sentence = prefill_limits(p)) return sentence;
  if (auto sentence = plain_prefill_only(p)) return sentence;
  const std::int64_t tiles = (p.q_len + kLeastTileQ - 1) / kLeastTileQ;
  if (p.batch * p.q_heads > kMaxBlocks / tiles)
    return "batch * q_heads * q_len / " + std::to_string(kLeastTileQ) + " must be at most " +
           std::to_string(kMaxBlocks) + " (thread blocks of one launch), got " + std::to_string(p.batch * p.q_heads) +
           " heads of " + std::to_string(tiles);
  return std::nullopt;
}

void run(const AttentionPrefillProblem& p, const AttentionPrefillTensors& t, const Launch& launch) {
  if (p.head_dim <= 64) {
    launch_flash_sm80<64>(p, t, launch.stream);
  } else if (p.head_dim <= 96) {
    launch_flash_sm80<96>(p, t, launch.stream);
  } else if (p.head_dim <= 128) {
    launch_flash_sm80<128>(p, t, launch.stream);
  } else if (p.head_dim <= 192) {
    launch_flash_sm80<192>(p, t, launch.stream);
  } else {
    launch_flash_sm80<256>(p, t, launch.stream);
  }
}

const RegisterVariant<AttentionPrefill> registered{{
    .name = "cuda.flash_sm80",
    .summary = "FlashAttention with mma.sync, cp.async and online softmax",
    .min_sm = 80,
    .unsupported = &unsupported,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
