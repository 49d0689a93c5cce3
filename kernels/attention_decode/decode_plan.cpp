#include "kernels/attention_decode/decode_plan.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "kernels/attention_decode/partition.hpp"

namespace inferometer::decode {
namespace {

constexpr std::array kHeadDims{64, 80, 96, 112, 128, 192, 256};
constexpr std::int64_t kWidestTwoTileHead = 128;  // 16 rows x 128 accumulators a warp: 64 registers a lane

constexpr std::int64_t kMostKeys = std::int64_t{1} << 30;
constexpr std::int64_t kMostHeads = std::int64_t{1} << 16;
constexpr std::int64_t kMostRows = (std::int64_t{1} << 32) - 1;
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 30;

// What a block's start and end cost beside its keys, and what merging one more part costs, in keys read at an SM's
// share of the bandwidth (measured on an H200 at head_dim 128: 2 us and 0.1 us).
constexpr std::int64_t kBlockCostKeys = 128;
constexpr std::int64_t kPartCostKeys = 8;

// Keys that the four warps of a block take in one turn; a part that fills no whole turn leaves warps idle.
constexpr std::int64_t kTurnKeys = std::int64_t{4} * kTileKeys;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::size_t align_256(std::int64_t bytes) { return static_cast<std::size_t>(ceil_div(bytes, 256) * 256); }

std::int64_t keys_when_cut(const AttentionDecodeProblem& p, std::int64_t parts) {
  return part_keys(static_cast<std::int32_t>(p.context), static_cast<std::int32_t>(parts));
}

// Blocks of one KV head and row block, over all sequences, when a part has `keys` keys.
std::int64_t pieces(const AttentionDecodeProblem& p, std::int64_t keys) {
  if (p.contexts.empty()) return p.batch * ceil_div(p.context, keys);
  std::int64_t sum = 0;
  for (const std::int64_t context : p.contexts) sum += std::max(ceil_div(context, keys), std::int64_t{1});
  return sum;
}

// Keys of a part. SMs that run dry before the others cost more than anything else, so it weighs the rounds that the
// busiest SM makes: ceil(blocks / SMs) times what a block takes.
std::int64_t choose_part_keys(const AttentionDecodeProblem& p, std::int64_t units_per_sequence, int sm_count) {
  std::int64_t total = p.batch * p.context;
  if (!p.contexts.empty()) total = std::accumulate(p.contexts.begin(), p.contexts.end(), std::int64_t{0});
  const std::int64_t least_keys =
      std::max(std::int64_t{kTileKeys}, total * units_per_sequence / (std::int64_t{2} * sm_count));
  std::int64_t best_keys = keys_when_cut(p, 1);
  std::int64_t best_cost = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t parts = 1; parts == 1 || parts * least_keys <= p.context; ++parts) {
    const std::int64_t keys = keys_when_cut(p, parts);
    const std::int64_t rounds = ceil_div(pieces(p, keys) * units_per_sequence, sm_count);
    const std::int64_t turns = ceil_div(keys, kTurnKeys);
    const std::int64_t cost = rounds * (turns * kTurnKeys + kBlockCostKeys) + parts * kPartCostKeys;
    if (cost >= best_cost) continue;
    best_cost = cost;
    best_keys = keys;
  }
  return best_keys;
}

}  // namespace

int block_rows(const AttentionDecodeProblem& p) {
  const std::int64_t rows = p.q_heads / p.kv_heads * p.q_len;
  return rows > 8 && p.head_dim <= kWidestTwoTileHead ? 16 : 8;
}

Plan make_plan(const AttentionDecodeProblem& p, int sm_count) {
  Plan plan;
  plan.block_rows = block_rows(p);
  plan.row_blocks = ceil_div(p.q_heads / p.kv_heads * p.q_len, plan.block_rows);
  plan.units = p.batch * p.kv_heads * plan.row_blocks;
  if (p.splits > 0) {
    plan.parts = p.splits;
  } else {
    plan.keys_per_part = choose_part_keys(p, p.kv_heads * plan.row_blocks, sm_count);
    plan.parts = std::max(ceil_div(p.context, plan.keys_per_part), std::int64_t{1});
  }
  if (plan.parts == 1) return plan;
  const std::int64_t slots = plan.blocks() * plan.block_rows;
  plan.states_at = align_256(plan.units * std::int64_t{4});
  plan.outputs_at = plan.states_at + align_256(slots * 8);
  plan.workspace_bytes = plan.outputs_at + align_256(slots * p.head_dim * 4);
  return plan;
}

std::optional<std::string> unsupported_by_kernel(const AttentionDecodeProblem& p) {
  if (std::find(kHeadDims.begin(), kHeadDims.end(), p.head_dim) == kHeadDims.end()) {
    std::string sentence = "head_dim must be one of";
    for (const int dim : kHeadDims) sentence += (dim == kHeadDims.front() ? " " : ", ") + std::to_string(dim);
    return sentence + ", got " + std::to_string(p.head_dim);
  }
  if (p.dtype != Dtype::f16 && p.dtype != Dtype::bf16)
    return "dtype must be f16 or bf16, got " + std::string(dtype_name(p.dtype));
  if (p.context > kMostKeys)
    return "context must be at most 2^30, since keys are counted in 32 bits, got " + std::to_string(p.context);
  if (p.q_heads > kMostHeads) return "q_heads must be at most 65536, got " + std::to_string(p.q_heads);
  const std::int64_t rows = p.block_size == 0 ? p.batch * p.context : p.batch * p.max_blocks() * p.block_size;
  if (rows > kMostRows) return "the cache must have at most 2^32 - 1 rows, got " + std::to_string(rows);
  const std::int64_t blocks = p.batch * p.q_heads * p.q_len * std::max(p.splits, std::int64_t{1});
  if (blocks > kMostBlocks)
    return "batch x q_heads x q_len x splits must be at most 2^30, for the grid, got " + std::to_string(blocks);
  if (p.kv_bits != 16) return "kv_bits must be 16, got " + std::to_string(p.kv_bits);
  return std::nullopt;
}

}  // namespace inferometer::decode
