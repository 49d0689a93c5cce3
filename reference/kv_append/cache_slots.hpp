// Where the cache of a kv_append problem lies: its blocks, and the elements that appending must leave alone.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/operator/tensor.hpp"
#include "reference/kv_append/problem.hpp"

namespace inferometer {

// Areas of the cache: sequences of a contiguous one, blocks of a paged one (a few of them free).
// Throws ProblemError past 2^63 - 1 blocks.
std::int64_t cache_areas(const KvAppendProblem& problem);

// Slots of an area, one a token.
std::int64_t area_slots(const KvAppendProblem& problem);

// [batch, max_blocks()], rows padded with -1; it covers the new tokens too. Blocks stand in random order, the same for
// the same problem. Paged problems only.
std::vector<std::int32_t> append_block_table(const KvAppendProblem& problem);

// Elements of a cache tensor whose slots get no new token. In each area it holds `layers` times all slots (the KV heads
// of a quantised cache), a slot in `slot_elements` elements.
std::vector<ElementRange> untouched_slots(const KvAppendProblem& problem, std::int64_t layers,
                                          std::int64_t slot_elements);

}  // namespace inferometer
