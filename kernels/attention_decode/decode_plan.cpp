#include "kernels/attention_decode/decode_plan.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>

#include "kernels/attention_decode/decode_cost.hpp"
#include "kernels/attention_decode/partition.hpp"
#include "kernels/attention_decode/shape.hpp"

namespace inferometer::decode {
namespace {

constexpr std::array kHeadDims{64, 80, 96, 112, 128, 192, 256};
constexpr std::array kCodeHeadDims{64, 96, 128, 192, 256};  // rows of codes are whole numbers of 16 bytes
constexpr std::int64_t kWidestTwoTileHead = 128;            // 16 rows x 128 accumulators a warp: 64 registers a lane

constexpr std::int64_t kMostKeys = std::int64_t{1} << 30;
constexpr std::int64_t kMostHeads = std::int64_t{1} << 16;
constexpr std::int64_t kMostRows = (std::int64_t{1} << 32) - 1;
constexpr std::int64_t kSpareBlocks = 1024;  // of a pool, beyond what the block tables can name at once
constexpr std::int64_t kMostGrid = 65535;    // in its y and z dimensions
constexpr std::int64_t kMostParts = 4096;

// Long parts of a 16-bit cache in many waves run about 1 % faster in wide form.
constexpr std::int64_t kWideWaves = 6;
constexpr std::int64_t kWideKeys = 4096;
constexpr std::int64_t kLeastWideKeys = 256;  // of a part: with fewer, twice the warps have little to do but to merge
constexpr std::size_t kWideSmemBytes = std::size_t{227} * 1024;  // that it may take of an SM

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::size_t align_256(std::int64_t bytes) { return static_cast<std::size_t>(ceil_div(bytes, 256) * 256); }

// Keys of a sequence that the parts cover: all, or those that its window leaves.
std::int64_t covered_keys(const AttentionDecodeProblem& p, std::int64_t context) {
  const auto length = static_cast<std::int32_t>(context);
  const auto window = static_cast<std::int32_t>(std::min(p.window_left, kMostKeys));
  return context - first_part_key(length, static_cast<std::int32_t>(p.q_len), window);
}

// Of the sequence with the most: with a window not always the longest, since parts begin at multiples of kPartKeys.
std::int64_t most_covered_keys(const AttentionDecodeProblem& p) {
  if (p.contexts.empty()) return covered_keys(p, p.context);
  std::int64_t most = 0;
  for (const std::int64_t context : p.contexts) most = std::max(most, covered_keys(p, context));
  return most;
}

std::int64_t total_keys(const AttentionDecodeProblem& p) {
  if (p.contexts.empty()) return p.batch * covered_keys(p, p.context);
  std::int64_t sum = 0;
  for (const std::int64_t context : p.contexts) sum += covered_keys(p, context);
  return sum;
}

// Blocks of one KV head and row block, over all sequences, when a part has `keys` keys.
std::int64_t pieces(const AttentionDecodeProblem& p, std::int64_t keys) {
  if (p.contexts.empty()) return p.batch * ceil_div(covered_keys(p, p.context), keys);
  std::int64_t sum = 0;
  for (const std::int64_t context : p.contexts)
    sum += std::max(ceil_div(covered_keys(p, context), keys), std::int64_t{1});
  return sum;
}

bool has_groups(const AttentionDecodeProblem& p) { return p.kv_bits != 16 && p.groups() > 1; }

bool takes_wide_form(const AttentionDecodeProblem& p, const GpuLimits& gpu, std::int64_t blocks, std::int64_t keys) {
  if (!has_wide_form(static_cast<int>(p.head_dim)) || has_groups(p) || gpu.block_smem_bytes < kWideSmemBytes)
    return false;
  if (blocks <= gpu.sm_count) return keys >= kLeastWideKeys;
  return p.kv_bits == 16 && blocks >= kWideWaves * gpu.sm_count && keys >= kWideKeys;
}

// Whether the parts of every unit can be clusters whose blocks all have an SM of their own at once. A cluster lies
// within one GPC; of an H200's, not all have 16 SMs, so that 15 clusters of 8 and 30 of 4 fit its 132 SMs, and of other
// sizes fewer than that.
bool fit_as_clusters(const GpuLimits& gpu, std::int64_t units, std::int64_t parts) {
  if (!gpu.clusters) return false;
  if (parts == 2) return units * parts <= gpu.sm_count;
  return (parts == 4 || parts == kMostClusterParts) && units * parts <= gpu.sm_count * std::int64_t{9} / 10;
}

Cut cut_into(const AttentionDecodeProblem& p, const GpuLimits& gpu, std::int64_t units_per_sequence,
             std::int64_t parts) {
  const std::int64_t longest = most_covered_keys(p);
  Cut cut;
  cut.keys = part_keys(static_cast<std::int32_t>(longest), static_cast<std::int32_t>(parts));
  cut.parts = std::max(ceil_div(longest, cut.keys), std::int64_t{1});
  cut.blocks = pieces(p, cut.keys) * units_per_sequence;
  cut.wide = takes_wide_form(p, gpu, cut.blocks, cut.keys);
  cut.cluster = fit_as_clusters(gpu, p.batch * units_per_sequence, cut.parts);
  return cut;
}

// The cheapest of all even cuts that leave no more blocks than the GPU holds at once.
Cut choose_cut(const AttentionDecodeProblem& p, const GpuLimits& gpu, std::int64_t units_per_sequence, int row_tiles) {
  const int narrow = narrow_blocks_per_sm(static_cast<int>(p.kv_bits), static_cast<int>(p.head_dim), row_tiles);
  const std::int64_t least_keys =
      std::max(std::int64_t{kPartKeys}, total_keys(p) * units_per_sequence / (std::int64_t{narrow} * gpu.sm_count));
  const std::int64_t longest = most_covered_keys(p);
  Cut best;
  double best_cost = std::numeric_limits<double>::infinity();
  for (std::int64_t parts = 1; parts == 1 || (parts * least_keys <= longest && parts <= kMostParts); ++parts) {
    const Cut cut = cut_into(p, gpu, units_per_sequence, parts);
    const double cost = cost_of(cut, kv_format_of(p), cut.wide ? 1 : narrow, gpu.sm_count);
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = cut;
  }
  return best;
}

std::string allowed_list(std::span<const int> dims) {
  std::string list;
  for (const int dim : dims) list += (list.empty() ? "" : ", ") + std::to_string(dim);
  return list;
}

}  // namespace

KvFormat kv_format_of(const AttentionDecodeProblem& p) {
  if (p.kv_bits == 16) return KvFormat::half;
  if (p.kv_bits == 4) return KvFormat::int4;
  return p.kv_format == "fp8_e4m3" ? KvFormat::e4m3 : KvFormat::int8;
}

int row_tiles(const AttentionDecodeProblem& p) {
  return p.q_heads / p.kv_heads * p.q_len > 8 && p.head_dim <= kWidestTwoTileHead ? 2 : 1;
}

Plan make_plan(const AttentionDecodeProblem& p, const GpuLimits& gpu) {
  Plan plan;
  plan.kernel = {.head_dim = p.head_dim, .row_tiles = row_tiles(p), .grouped = has_groups(p)};
  plan.row_blocks = ceil_div(p.q_heads / p.kv_heads * p.q_len, plan.block_rows());
  plan.units = p.batch * p.kv_heads * plan.row_blocks;
  const std::int64_t units_per_sequence = p.kv_heads * plan.row_blocks;
  if (p.splits > 0) {  // one form for any batch, so that a sequence's result does not depend on the others
    plan.parts = p.splits;
  } else {
    const Cut cut = choose_cut(p, gpu, units_per_sequence, plan.kernel.row_tiles);
    plan.keys_per_part = cut.keys;
    plan.parts = cut.parts;
    plan.kernel.wide = cut.wide;
    plan.cluster = cut.cluster;
  }
  if (plan.parts == 1 || plan.cluster) return plan;
  const std::int64_t slots = plan.blocks() * plan.block_rows();
  plan.states_at = align_256(plan.units * std::int64_t{4});
  plan.outputs_at = plan.states_at + align_256(slots * 8);
  plan.workspace_bytes = plan.outputs_at + align_256(slots * p.head_dim * 4);
  return plan;
}

std::optional<std::string> unsupported_by_kernel(const AttentionDecodeProblem& p) {
  const std::span<const int> dims = p.kv_bits == 16 ? std::span<const int>(kHeadDims) : kCodeHeadDims;
  if (std::find(dims.begin(), dims.end(), p.head_dim) == dims.end())
    return "head_dim must be one of " + allowed_list(dims) + (p.kv_bits == 16 ? "" : " with quantised KV") + ", got " +
           std::to_string(p.head_dim);
  if (p.dtype != Dtype::f16 && p.dtype != Dtype::bf16)
    return "dtype must be f16 or bf16, got " + std::string(dtype_name(p.dtype));
  if (p.context > kMostKeys)
    return "context must be at most 2^30, since keys are counted in 32 bits, got " + std::to_string(p.context);
  if (p.q_heads > kMostHeads) return "q_heads must be at most 65536, got " + std::to_string(p.q_heads);
  const std::int64_t tokens =
      p.block_size == 0 ? p.batch * p.context : (p.batch * p.max_blocks() + kSpareBlocks) * p.block_size;
  const std::int64_t rows = p.kv_bits == 16 ? tokens : tokens * p.kv_heads;
  if (rows > kMostRows) return "the cache must have at most 2^32 - 1 rows, got " + std::to_string(rows);
  const std::int64_t row_blocks = ceil_div(p.q_heads / p.kv_heads * p.q_len, std::int64_t{8} * row_tiles(p));
  if (p.batch * row_blocks > kMostGrid)
    return "batch x blocks of query rows must be at most 65535, for the grid, got " +
           std::to_string(p.batch * row_blocks);
  return std::nullopt;
}

}  // namespace inferometer::decode
