// What fills Q: random queries that lean towards the newest key they see.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/operator/tensor.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer {

// The score that a query gives its own token's key, the newest of the `keys` it sees; all others are standard normal.
//
// Among n keys of standard normal scores one key is the n-th part of O's square: at n = 32k nobody would miss it in
// bf16. O is then sqrt(e / n) long, in lengths of a value, and a key of score s adds exp(s) / (n sqrt(e)) to it: a
// fifth of its length where s = 1 + log(sqrt(n) / 5). With a soft cap the key must show whether the cap was applied,
// and has half of all weight: s = log(n) + 1/2, which a cap of 50 lowers by 0.04 at n = 500 and by 0.17 at n = 32k.
double newest_score(const AttentionDecodeProblem& problem, std::int64_t keys);

// `specs`: the tensors, all but Q with their contents. Q is a g + b k with g standard normal and k the query's own key:
// b k adds the score above, at most 0.95 |k|, which no query of the length of g exceeds, and a keeps all other scores
// at a standard deviation of 1. A short key cannot have a high score: with head_dim 64, from 32k tokens on, a forgotten
// cap of 50 may pass. Queries that see no key are g.
Computed leaning_queries(const AttentionDecodeProblem& problem, const std::vector<TensorSpec>& specs);

}  // namespace inferometer
