// What a decode problem takes, and how far its answers may lie from the exact ones.
#pragma once

#include <string_view>

#include "harness/operator/operator.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer {

// FLOPs of the visible (query, key) pairs; bytes of the keys and values that some query sees, with their scales, and
// of Q, O and the log-sum-exp. Lengths, block table and the padding of rows are not counted as useful.
Work decode_work(const AttentionDecodeProblem& problem);

Tolerance decode_tolerance(const AttentionDecodeProblem& problem, std::string_view tensor);

}  // namespace inferometer
