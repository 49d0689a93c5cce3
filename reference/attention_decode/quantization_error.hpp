// What quantising a KV cache costs in accuracy, on keys as real ones are.
//
// Keys of language models have a few channels of far greater magnitude, the same ones all along the sequence; values
// have none (Liu et al., "KIVI", ICML 2024, section 3.1; Hooper et al., "KVQuant", NeurIPS 2024, section 3.1). A scale
// that covers such a channel leaves few codes for its neighbours, which random inputs would not show.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer {

// Relative L2 errors of O against the same attention over keys and values that were never rounded: root mean squares
// over the sets they are taken of.
struct QuantizationError {
  double both = 0;  // keys and values quantised
  double keys = 0;  // keys alone
};

// kv_bits 8 and 4. A set is one KV head with `context` tokens and 16 queries that see what the newest query sees
// (window, soft cap), quantised as layout.hpp says and computed in f64. Keys and values are normal of standard
// deviation 1, every 32nd channel of the keys of 10; queries are scaled for scores of standard deviation 1. Of more
// than 2^18 keys, 2^18 are taken. Where the outliers fall among the groups moves the error of one set, so that several
// are drawn from `seed`: 16 of up to 2^15 keys, 4 from 2^17 keys on. The same for any number of threads.
QuantizationError quantization_error(const AttentionDecodeProblem& problem, std::uint64_t seed, int threads);

// quantization_rel_error and quantization_rel_error_keys; none for kv_bits 16.
std::vector<Metric> decode_metrics(const AttentionDecodeProblem& problem, const Inputs& inputs,
                                   std::span<const void* const> tensors, int threads);

}  // namespace inferometer
