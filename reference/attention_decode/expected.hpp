// The judge of attention_decode: the equation in double precision on a sample of (sequence, KV head) pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer {

// O and log-sum-exp of sampled rows. Lengths and block table are read from `inputs`, so that tests may change them.
// The first, the last, the shortest (an empty one, if any) and the longest sequence are always among them.
std::vector<ExpectedSpan> expect_attention_decode(const AttentionDecodeProblem& problem, const Inputs& inputs,
                                                  std::uint64_t seed, int threads);

}  // namespace inferometer
