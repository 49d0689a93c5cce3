// attention_prefill / cuda.flash_sm90: FlashAttention forward with wgmma, the copy engine and specialised warps.
//
//   in   q, k, v, lengths and block table as reference/attention_prefill/problem.hpp has them    f16, bf16
//   out  o, lse
//
// After: Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", NeurIPS 2022; Shah
// et al., "FlashAttention-3: Fast and Accurate Attention with Asynchrony and Low-precision", 2024.
#include "kernels/attention_prefill/flash_sm90.hpp"

#include <cstdint>
#include <utility>

#include "kernels/attention_prefill/flash_sm90_launch.hpp"
#include "kernels/attention_prefill/prefill_limits.hpp"

namespace inferometer {
namespace {

using Launcher = void (*)(const AttentionPrefillProblem&, const AttentionPrefillTensors&, const Launch&);

Launcher launcher(std::int64_t head_dim, std::int64_t v_dim) {
  const std::pair dims{head_dim, v_dim};
  if (dims == std::pair<std::int64_t, std::int64_t>{64, 64}) return &launch_flash_sm90<64, 64>;
  if (dims == std::pair<std::int64_t, std::int64_t>{96, 96}) return &launch_flash_sm90<96, 96>;
  if (dims == std::pair<std::int64_t, std::int64_t>{128, 128}) return &launch_flash_sm90<128, 128>;
  if (dims == std::pair<std::int64_t, std::int64_t>{192, 192}) return &launch_flash_sm90<192, 192>;
  if (dims == std::pair<std::int64_t, std::int64_t>{192, 128}) return &launch_flash_sm90<192, 128>;
  if (dims == std::pair<std::int64_t, std::int64_t>{256, 256}) return &launch_flash_sm90<256, 256>;
  return nullptr;
}

const RegisterVariant<AttentionPrefill> registered{{
    .name = "cuda.flash_sm90",
    .summary = "FlashAttention with wgmma, TMA and specialised warps",
    .min_sm = 90,
    .unsupported = &flash_sm90_unsupported,
    .workspace_bytes = &flash_sm90_workspace_bytes,
    .run = &run_flash_sm90,
}};

}  // namespace

std::optional<std::string> flash_sm90_unsupported(const AttentionPrefillProblem& p) {
  if (auto sentence = prefill_limits(p)) return sentence;
  if (launcher(p.head_dim, p.v_dim()) == nullptr)
    return "head_dim must be 64, 96, 128, 192 or 256 and v_head_dim the same, or 192 and 128, got " +
           std::to_string(p.head_dim) + " and " + std::to_string(p.v_dim());
  for (const auto& [name, stride] : {std::pair{"k_row_stride", p.k_stride()}, std::pair{"v_row_stride", p.v_stride()}})
    if (stride % 8 != 0)
      return std::string(name) + " must be a multiple of 8 (16 bytes, for the copy engine), got " +
             std::to_string(stride);
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  for (const auto& [name, tokens] : {std::pair{"q_lens", p.total_q()}, std::pair{"kv_lens", p.total_kv()}})
    if (p.ragged() && tokens > kMost)
      return "the sum of " + std::string(name) + " must be at most " + std::to_string(kMost) + ", got " +
             std::to_string(tokens);
  constexpr std::int64_t kLeastTileQ = 128;
  const std::int64_t tiles =
      p.ragged() ? p.total_q() / kLeastTileQ + p.batch : (p.q_len + kLeastTileQ - 1) / kLeastTileQ;
  const std::int64_t heads = p.ragged() ? p.q_heads : p.batch * p.q_heads;
  if (tiles > 0 && heads > kMost / tiles)
    return "heads times tiles of " + std::to_string(kLeastTileQ) + " queries must be at most " + std::to_string(kMost) +
           ", got " + std::to_string(heads) + " and " + std::to_string(tiles);
  return std::nullopt;
}

std::size_t flash_sm90_workspace_bytes(const AttentionPrefillProblem&) { return 2 * sizeof(std::uint32_t); }

void run_flash_sm90(const AttentionPrefillProblem& p, const AttentionPrefillTensors& t, const Launch& launch) {
  if (p.total_q() == 0) return;
  launcher(p.head_dim, p.v_dim())(p, t, launch);
}

}  // namespace inferometer
