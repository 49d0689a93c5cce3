#include "reference/attention_decode/cache_layout.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "harness/operator/fields.hpp"
#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

// So that a kernel which reads a block it does not own meets NaN even where every sequence fills its last block.
constexpr std::int64_t kFreeBlocks = 3;

std::int64_t blocks_of(const AttentionDecodeProblem& p, std::int64_t sequence) {
  const std::int64_t context = p.context_of(sequence);
  return context / p.block_size + (context % p.block_size != 0 ? 1 : 0);
}

// All blocks of the pool, shuffled (Fisher-Yates); sequences take theirs from the front, in turn.
std::vector<std::int32_t> shuffled_blocks(const AttentionDecodeProblem& p) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(pool_blocks(p)));
  std::iota(blocks.begin(), blocks.end(), 0);
  const std::uint64_t key = stream_key(blocks.size(), static_cast<std::uint64_t>(p.block_size));
  for (std::size_t left = blocks.size(); left > 1; --left)
    std::swap(blocks[left - 1], blocks[mix_bits(key + left) % left]);
  return blocks;
}

}  // namespace

std::int64_t used_blocks(const AttentionDecodeProblem& problem) {
  if (problem.contexts.empty()) return checked_product("context", {problem.batch, blocks_of(problem, 0)});
  std::int64_t blocks = 0;  // at most 2^31 for each of at most 2^20 sequences
  for (std::int64_t b = 0; b < problem.batch; ++b) blocks += blocks_of(problem, b);
  return blocks;
}

std::int64_t pool_blocks(const AttentionDecodeProblem& problem) { return used_blocks(problem) + kFreeBlocks; }

std::vector<std::int32_t> block_table(const AttentionDecodeProblem& problem) {
  const std::vector<std::int32_t> blocks = shuffled_blocks(problem);
  const std::int64_t columns = problem.max_blocks();
  std::vector<std::int32_t> table(static_cast<std::size_t>(problem.batch * columns), -1);
  auto next = blocks.begin();
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const auto end = next + blocks_of(problem, b);
    std::copy(next, end, table.begin() + b * columns);
    next = end;
  }
  return table;
}

std::vector<ElementRange> unused_slots(const AttentionDecodeProblem& problem) {
  const std::int64_t token = problem.kv_heads * problem.head_dim;  // elements
  std::vector<ElementRange> unused;
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    if (begin < end) unused.push_back({.begin = begin * token, .end = end * token});
  };
  if (problem.block_size == 0) {
    for (std::int64_t b = 0; b < problem.batch; ++b)
      add(b * problem.context + problem.context_of(b), (b + 1) * problem.context);
    return unused;
  }
  const std::vector<std::int32_t> blocks = shuffled_blocks(problem);
  std::size_t taken = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    taken += static_cast<std::size_t>(blocks_of(problem, b));
    const std::int64_t in_last = problem.context_of(b) % problem.block_size;
    if (in_last == 0) continue;  // full, or no block at all
    const std::int64_t last = blocks[taken - 1];
    add(last * problem.block_size + in_last, (last + 1) * problem.block_size);
  }
  for (; taken < blocks.size(); ++taken) {
    const std::int64_t free = blocks[taken];
    add(free * problem.block_size, (free + 1) * problem.block_size);
  }
  return unused;
}

}  // namespace inferometer
