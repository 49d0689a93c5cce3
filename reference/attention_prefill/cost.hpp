// What a prefill problem takes, and how far its answers may lie from the exact ones.
#pragma once

#include <string_view>

#include "harness/operator/operator.hpp"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {

// FLOPs of the visible (query, key) pairs; bytes of Q, O, the log-sum-exp, and the keys and values that some query
// sees. Prefix sums, block table and the padding of rows are not counted as useful.
Work prefill_work(const AttentionPrefillProblem& problem);

Tolerance prefill_tolerance(const AttentionPrefillProblem& problem, std::string_view tensor);

}  // namespace inferometer
