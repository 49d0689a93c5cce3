#include "reference/kv_cache/block_layout.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

// So that a kernel which reads a block it does not own meets NaN even where every sequence fills its last block.
constexpr std::int64_t kFreeBlocks = 3;

std::int64_t blocks_of(std::int64_t tokens, std::int64_t block_size) {
  return tokens / block_size + (tokens % block_size != 0 ? 1 : 0);
}

// All blocks of the pool, shuffled (Fisher-Yates); sequences take theirs from the front, in turn.
std::vector<std::int32_t> shuffled_blocks(const SequenceLengths& lengths, std::int64_t block_size) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(pool_blocks(lengths, block_size)));
  std::iota(blocks.begin(), blocks.end(), 0);
  const std::uint64_t key = stream_key(blocks.size(), static_cast<std::uint64_t>(block_size));
  for (std::size_t left = blocks.size(); left > 1; --left)
    std::swap(blocks[left - 1], blocks[mix_bits(key + left) % left]);
  return blocks;
}

}  // namespace

std::int64_t used_blocks(const SequenceLengths& lengths, std::int64_t block_size) {
  if (lengths.each.empty()) return lengths.count * blocks_of(lengths.common, block_size);
  std::int64_t blocks = 0;
  for (const std::int64_t tokens : lengths.each) blocks += blocks_of(tokens, block_size);
  return blocks;
}

std::int64_t pool_blocks(const SequenceLengths& lengths, std::int64_t block_size) {
  return used_blocks(lengths, block_size) + kFreeBlocks;
}

std::vector<std::int32_t> block_table(const SequenceLengths& lengths, std::int64_t block_size, std::int64_t columns) {
  const std::vector<std::int32_t> blocks = shuffled_blocks(lengths, block_size);
  std::vector<std::int32_t> table(static_cast<std::size_t>(lengths.count * columns), -1);
  auto next = blocks.begin();
  for (std::int64_t b = 0; b < lengths.count; ++b) {
    const auto end = next + blocks_of(lengths.of(b), block_size);
    std::copy(next, end, table.begin() + b * columns);
    next = end;
  }
  return table;
}

std::vector<SlotRange> free_block_slots(const SequenceLengths& lengths, std::int64_t block_size) {
  const std::vector<std::int32_t> blocks = shuffled_blocks(lengths, block_size);
  std::vector<SlotRange> unused;
  std::size_t taken = 0;
  for (std::int64_t b = 0; b < lengths.count; ++b) {
    taken += static_cast<std::size_t>(blocks_of(lengths.of(b), block_size));
    const std::int64_t in_last = lengths.of(b) % block_size;
    if (in_last == 0) continue;  // full, or no block at all
    unused.push_back({.page = blocks[taken - 1], .begin = in_last, .end = block_size});
  }
  for (; taken < blocks.size(); ++taken) unused.push_back({.page = blocks[taken], .begin = 0, .end = block_size});
  return unused;
}

std::vector<ElementRange> elements_of_slots(std::span<const SlotRange> slots, std::int64_t slots_of_page,
                                            std::int64_t token_elements) {
  std::vector<ElementRange> elements;
  elements.reserve(slots.size());
  for (const SlotRange& range : slots) {
    const std::int64_t page = range.page * slots_of_page;
    elements.push_back({.begin = (page + range.begin) * token_elements, .end = (page + range.end) * token_elements});
  }
  return elements;
}

void add_row_padding(std::int64_t used, std::int64_t row, std::int64_t elements, std::vector<ElementRange>& unused) {
  if (used < row && elements > 0)
    unused.push_back({.begin = used, .end = row, .repeats = elements / row, .stride = row});
}

}  // namespace inferometer
