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

// What the slots of a cache are counted within: a block, or the reservation of a sequence in a contiguous cache.
std::int64_t slots_of_page(const AttentionDecodeProblem& p) { return p.block_size == 0 ? p.context : p.block_size; }

// Neighbouring slots of one page.
struct PageSlots {
  std::int64_t page;
  std::int64_t begin;
  std::int64_t end;
};

// Slots that hold no token.
std::vector<PageSlots> free_slots(const AttentionDecodeProblem& p) {
  std::vector<PageSlots> unused;
  if (p.block_size == 0) {
    for (std::int64_t b = 0; b < p.batch; ++b)
      if (p.context_of(b) < p.context) unused.push_back({.page = b, .begin = p.context_of(b), .end = p.context});
    return unused;
  }
  const std::vector<std::int32_t> blocks = shuffled_blocks(p);
  std::size_t taken = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    taken += static_cast<std::size_t>(blocks_of(p, b));
    const std::int64_t in_last = p.context_of(b) % p.block_size;
    if (in_last == 0) continue;  // full, or no block at all
    unused.push_back({.page = blocks[taken - 1], .begin = in_last, .end = p.block_size});
  }
  for (; taken < blocks.size(); ++taken) unused.push_back({.page = blocks[taken], .begin = 0, .end = p.block_size});
  return unused;
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

std::vector<ElementRange> unused_tokens(const AttentionDecodeProblem& problem, std::int64_t token_elements) {
  std::vector<ElementRange> unused;
  for (const PageSlots& free : free_slots(problem)) {
    const std::int64_t page = free.page * slots_of_page(problem);
    unused.push_back({.begin = (page + free.begin) * token_elements, .end = (page + free.end) * token_elements});
  }
  return unused;
}

std::vector<ElementRange> unused_rows(const AttentionDecodeProblem& problem, std::int64_t row_elements) {
  const std::int64_t head = slots_of_page(problem) * row_elements;
  std::vector<ElementRange> unused;
  for (const PageSlots& free : free_slots(problem)) {
    const std::int64_t page = free.page * problem.kv_heads * head;
    unused.push_back({.begin = page + free.begin * row_elements,
                      .end = page + free.end * row_elements,
                      .repeats = problem.kv_heads,
                      .stride = head});
  }
  return unused;
}

}  // namespace inferometer
