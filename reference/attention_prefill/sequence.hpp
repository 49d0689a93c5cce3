// One sequence of attention_prefill as the CPU variants see it: where its rows lie, and which keys its queries see.
#pragma once

#include <cstdint>

#include "reference/attention_prefill/problem.hpp"
#include "reference/kv_cache/token_runs.hpp"

namespace inferometer {

struct PrefillSequence {
  std::int64_t index = 0;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t first_q = 0;    // its first row among those of all sequences, [total_q, q_heads, ...]
  std::int64_t first_key = 0;  // contiguous keys and values: its first row among those of all
  SequencePages pages;         // of its keys

  std::int64_t own_key(std::int64_t query) const { return query + kv_len - q_len; }  // bottom-right aligned
};

// Of sequence b, as prefix sums and block table in memory say.
PrefillSequence prefill_sequence(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                                 std::int64_t b);

// Keys [first, end).
struct SeenKeys {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

// Those that a query of the sequence sees; empty ranges have first = end.
SeenKeys visible_keys(const AttentionPrefillProblem& problem, const PrefillSequence& sequence, std::int64_t query);

// Keys and values [begin, begin + count) of one KV head to f32: k [count, head_dim], v [count, v_dim].
void load_keys_and_values(const AttentionPrefillProblem& problem, const AttentionPrefillTensors& tensors,
                          const PrefillSequence& sequence, std::int64_t kv_head, std::int64_t begin, std::int64_t count,
                          float* k, float* v);

// Place of a query's log-sum-exp.
std::int64_t lse_index(const AttentionPrefillProblem& problem, const PrefillSequence& sequence, std::int64_t head,
                       std::int64_t query);

}  // namespace inferometer
