// The judge of kv_append: what the reference quantiser makes of a sample of the new keys and values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/kv_append/problem.hpp"

namespace inferometer {

// Codes (as byte values), scales or elements of sampled tokens and heads, where they belong in the cache. The first and
// the last token, sequence and head are always among them. Lengths and block table are read from `inputs`, so that
// tests may change them.
std::vector<ExpectedSpan> expect_kv_append(const KvAppendProblem& problem, const Inputs& inputs, std::uint64_t seed,
                                           int threads);

// storage_rel_error of a quantised cache: root mean square of what the cache is worth minus what was appended,
// over that of what was appended; over the same kind of sample. Nothing with kv_bits 16.
std::vector<Metric> kv_append_metrics(const KvAppendProblem& problem, const Inputs& inputs,
                                      std::span<const void* const> tensors, int threads);

}  // namespace inferometer
