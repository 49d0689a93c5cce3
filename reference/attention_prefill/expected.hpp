// The judge of attention_prefill: the equation in double precision on a sample of queries.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {

// O and log-sum-exp of sampled queries: all of a small problem; of a large one, at least 16 queries of at least two
// query heads of at least four (sequence, KV head) pairs, the sequences with the fewest and the most keys among them.
// Prefix sums and block table are read from `inputs`, so that tests may change them.
std::vector<ExpectedSpan> expect_attention_prefill(const AttentionPrefillProblem& problem, const Inputs& inputs,
                                                   std::uint64_t seed, int threads);

}  // namespace inferometer
