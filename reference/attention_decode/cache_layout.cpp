#include "reference/attention_decode/cache_layout.hpp"

#include "reference/kv_cache/block_layout.hpp"

namespace inferometer {
namespace {

SequenceLengths lengths_of(const AttentionDecodeProblem& p) {
  return {.count = p.batch, .common = p.context, .each = p.contexts};
}

// What the slots of a cache are counted within: a block, or the reservation of a sequence in a contiguous cache.
std::int64_t slots_of_page(const AttentionDecodeProblem& p) { return p.block_size == 0 ? p.context : p.block_size; }

// Slots that hold no token.
std::vector<SlotRange> free_slots(const AttentionDecodeProblem& p) {
  if (p.block_size != 0) return free_block_slots(lengths_of(p), p.block_size);
  std::vector<SlotRange> unused;
  for (std::int64_t b = 0; b < p.batch; ++b)
    if (p.context_of(b) < p.context) unused.push_back({.page = b, .begin = p.context_of(b), .end = p.context});
  return unused;
}

}  // namespace

std::int64_t used_blocks(const AttentionDecodeProblem& problem) {
  return used_blocks(lengths_of(problem), problem.block_size);
}

std::int64_t pool_blocks(const AttentionDecodeProblem& problem) {
  return pool_blocks(lengths_of(problem), problem.block_size);
}

std::vector<std::int32_t> block_table(const AttentionDecodeProblem& problem) {
  return block_table(lengths_of(problem), problem.block_size, problem.max_blocks());
}

std::vector<ElementRange> unused_tokens(const AttentionDecodeProblem& problem, std::int64_t token_elements) {
  return elements_of_slots(free_slots(problem), slots_of_page(problem), token_elements);
}

std::vector<ElementRange> unused_rows(const AttentionDecodeProblem& problem, std::int64_t row_elements) {
  const std::int64_t head = slots_of_page(problem) * row_elements;
  std::vector<ElementRange> unused;
  for (const SlotRange& free : free_slots(problem)) {
    const std::int64_t page = free.page * problem.kv_heads * head;
    unused.push_back({.begin = page + free.begin * row_elements,
                      .end = page + free.end * row_elements,
                      .repeats = problem.kv_heads,
                      .stride = head});
  }
  return unused;
}

}  // namespace inferometer
