// Prefill problems for tests: random ones, and ones whose tensors hold numbers chosen token by token, wherever a
// problem's layout puts a token.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "harness/operator/fields.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "tests/support/run_variant.hpp"
#include "tests/support/tensor_named.hpp"

namespace inferometer::test {

Fields prefill_fields(const AttentionPrefillProblem& p);

// Everything an attention_prefill problem can have, drawn at random: lengths up to `longest`, head_dim up to 256.
AttentionPrefillProblem random_prefill(std::mt19937_64& random, std::int64_t longest);

// The same with sequences of these lengths.
AttentionPrefillProblem with_lengths(AttentionPrefillProblem p, const std::vector<std::int64_t>& q_lens,
                                     const std::vector<std::int64_t>& kv_lens);

// An element of a row of tensor "q", "k" or "v": elements count heads times the elements of a head.
using PrefillValue = std::function<float(char tensor, std::int64_t sequence, std::int64_t token, std::int64_t element)>;

// Between -2 and 2, the same for the same arguments; of 11 bits, so that f16 holds it.
float random_prefill_value(char tensor, std::int64_t sequence, std::int64_t token, std::int64_t element);

// Fills Q, K and V with `value`, and all that belongs to no token with `unused`.
EditTensors fill_prefill(const AttentionPrefillProblem& p, const PrefillValue& value, float unused);

// Q of `q`, equal keys of `k`, and values that are their token's number: O is the mean number of the keys seen.
PrefillValue numbered_values(float q, float k);

// What one sequence got: O [q_len, q_heads, v_dim] and then the log-sum-exp [q_heads, q_len].
std::vector<float> answer_of(const VariantRun& run, const AttentionPrefillProblem& p, std::int64_t sequence);

}  // namespace inferometer::test
