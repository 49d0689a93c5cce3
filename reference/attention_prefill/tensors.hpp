// The tensors of attention_prefill: their shapes, what fills them, and the order in which they are bound.
#pragma once

#include <span>
#include <vector>

#include "harness/operator/tensor.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "reference/kv_cache/block_layout.hpp"

namespace inferometer {

// Keys of each sequence.
SequenceLengths key_lengths(const AttentionPrefillProblem& problem);

// q, k, v, cu_q_lens and cu_kv_lens (ragged), block_table (paged), o, lse.
std::vector<TensorSpec> prefill_tensors(const AttentionPrefillProblem& problem);

// Adds prefix sums, block table, and the elements that no correct kernel uses: free slots and the padding of rows.
void add_prefill_contents(const AttentionPrefillProblem& problem, std::vector<TensorSpec>& specs);

AttentionPrefillTensors bind_prefill(const AttentionPrefillProblem& problem, std::span<void* const> pointers);

}  // namespace inferometer
