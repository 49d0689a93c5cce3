// attention_prefill / cuda.flash_sm80: FlashAttention forward on mma.sync, for every GPU from sm_80 on.
//
//   in   q       [.., q_heads, head_dim]     f16, bf16
//        k, v    [.., kv_heads, dim]         as q
//   out  o       [.., q_heads, v_head_dim]   as q
//        lse     [.., q_len]                 f32
//
// Equal or ragged sequences, contiguous or paged keys: AttentionPrefillTensors says how they lie. What is more than
// plain (plain_prefill_only) goes to a second kernel of the same tiles, so that plain problems pay nothing for it.
// Compute bound: q_len x kv_len scores are made and used in registers, and memory sees only the tensors above.
// After: Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", NeurIPS 2022;
// Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "harness/operator/variant.hpp"
#include "kernels/attention_prefill/flash_sm80.hpp"
#include "kernels/attention_prefill/flash_sm80_params.hpp"
#include "kernels/attention_prefill/prefill_limits.hpp"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMaxHeadDim = 256;
constexpr std::int64_t kLeastTileQ = 64;  // queries of a thread block, in the smallest configuration
constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;

const RegisterVariant<AttentionPrefill> registered{{
    .name = "cuda.flash_sm80",
    .summary = "FlashAttention with mma.sync, cp.async and online softmax",
    .min_sm = 80,
    .unsupported = &flash_sm80_unsupported,
    .run = &run_flash_sm80,
}};

}  // namespace

std::optional<std::string> flash_sm80_unsupported(const AttentionPrefillProblem& p) {
  for (const auto& [name, dim] : {std::pair{"head_dim", p.head_dim}, std::pair{"v_head_dim", p.v_dim()}})
    if (dim % 8 != 0 || dim > kMaxHeadDim)
      return std::string(name) + " must be a multiple of 8 up to " + std::to_string(kMaxHeadDim) + ", got " +
             std::to_string(dim);
  if (auto sentence = prefill_limits(p)) return sentence;
  const std::int64_t heads = p.ragged() ? p.q_heads : p.batch * p.q_heads;
  const std::int64_t tiles =
      p.ragged() ? ragged_tile_numbers(p.total_q(), p.batch, kLeastTileQ) : (p.q_len + kLeastTileQ - 1) / kLeastTileQ;
  if (heads > kMaxBlocks / tiles)
    return "batch * q_heads * q_len / " + std::to_string(kLeastTileQ) + " must be at most " +
           std::to_string(kMaxBlocks) + " (thread blocks of one launch), got " + std::to_string(heads) + " heads of " +
           std::to_string(tiles);
  return std::nullopt;
}

void run_flash_sm80(const AttentionPrefillProblem& p, const AttentionPrefillTensors& t, const Launch& launch) {
  const std::int64_t widest = std::max(p.head_dim, p.v_dim());
  if (widest <= 64) {
    launch_flash_sm80<64>(p, t, launch.stream);
  } else if (widest <= 96) {
    launch_flash_sm80<96>(p, t, launch.stream);
  } else if (widest <= 128) {
    launch_flash_sm80<128>(p, t, launch.stream);
  } else if (widest <= 192) {
    launch_flash_sm80<192>(p, t, launch.stream);
  } else {
    launch_flash_sm80<256>(p, t, launch.stream);
  }
}

}  // namespace inferometer
