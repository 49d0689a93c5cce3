// The tensors of attention_decode: their shapes, what fills them, and the order in which they are bound.
#pragma once

#include <span>
#include <vector>

#include "harness/operator/tensor.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer {

// q, k, v, kv_scales (kv_bits 8 and 4), seq_lens, block_table (paged), o, lse.
std::vector<TensorSpec> decode_tensors(const AttentionDecodeProblem& problem);

// Adds lengths, block table, and the elements that no correct kernel uses: free slots and the padding of rows. Codes
// are random bytes; scales are positive and such that what codes and scales make has a root mean square of 1, as the
// elements of a cache of 16 bits have. Queries lean towards the newest key they see (queries.hpp).
void add_decode_contents(const AttentionDecodeProblem& problem, std::vector<TensorSpec>& specs);

AttentionDecodeTensors bind_decode(const AttentionDecodeProblem& problem, std::span<void* const> pointers);

}  // namespace inferometer
