// Where the KV cache of a decode problem lies: which block holds which tokens, and which slots hold none.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/operator/tensor.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer {

// Blocks that all sequences together fill, the last of each perhaps in part.
std::int64_t used_blocks(const AttentionDecodeProblem& problem);

// Blocks of the pool: the used ones and a few free ones. Paged problems only.
std::int64_t pool_blocks(const AttentionDecodeProblem& problem);

// [batch, max_blocks()], rows padded with -1. Blocks stand in random order, the same for the same problem.
std::vector<std::int32_t> block_table(const AttentionDecodeProblem& problem);

// Elements past the length of a sequence or in a free block, for the table of block_table.
// Of a cache whose tokens stand `token_elements` apart, all heads of one together (kv_bits 16):
std::vector<ElementRange> unused_tokens(const AttentionDecodeProblem& problem, std::int64_t token_elements);
// Of a cache whose heads stand outermost, `row_elements` a token and head (kv_bits 8 and 4: codes and scales):
std::vector<ElementRange> unused_rows(const AttentionDecodeProblem& problem, std::int64_t row_elements);

}  // namespace inferometer
