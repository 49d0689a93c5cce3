// Which block of a paged KV cache holds which tokens, and which of its slots hold none (Kwon et al., SOSP 2023): for
// every operator whose problem describes a cache by the lengths of its sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/operator/element_range.hpp"

namespace inferometer {

// Tokens of each of `count` sequences: `common`, or where `each` holds any, one number a sequence. count * common must
// not pass 2^63 - 1.
struct SequenceLengths {
  std::int64_t count = 0;
  std::int64_t common = 0;
  std::span<const std::int64_t> each = {};

  std::int64_t of(std::int64_t sequence) const {
    return each.empty() ? common : each[static_cast<std::size_t>(sequence)];
  }
};

// Neighbouring slots of one block, or of one sequence's reservation in a contiguous cache.
struct SlotRange {
  std::int64_t page = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Blocks that all sequences together fill, the last of each perhaps in part.
std::int64_t used_blocks(const SequenceLengths& lengths, std::int64_t block_size);

// Blocks of the pool: the used ones and a few free ones.
std::int64_t pool_blocks(const SequenceLengths& lengths, std::int64_t block_size);

// [count, columns], rows padded with -1. Blocks stand in random order, the same for the same pool.
std::vector<std::int32_t> block_table(const SequenceLengths& lengths, std::int64_t block_size, std::int64_t columns);

// Slots that hold no token, for the table of block_table.
std::vector<SlotRange> free_block_slots(const SequenceLengths& lengths, std::int64_t block_size);

// The elements of these slots in an array of pages of `slots_of_page` tokens that are `token_elements` apart, all heads
// of a token together.
std::vector<ElementRange> elements_of_slots(std::span<const SlotRange> slots, std::int64_t slots_of_page,
                                            std::int64_t token_elements);

// Adds what follows the first `used` elements of every row of `row` elements, in an array of `elements`.
void add_row_padding(std::int64_t used, std::int64_t row, std::int64_t elements, std::vector<ElementRange>& unused);

}  // namespace inferometer
