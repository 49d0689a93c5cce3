// Keys and values as the CPU variants of attention_decode read them from the cache in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/attention_decode/problem.hpp"
#include "reference/common/eigen.hpp"
#include "reference/kv_cache/token_runs.hpp"

namespace inferometer {

using RowsF32 = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Tokens [begin, end) of a sequence in runs of at most `most` tokens.
std::vector<TokenRun> token_runs(const AttentionDecodeProblem& problem, const AttentionDecodeTensors& tensors,
                                 std::int64_t sequence, std::int64_t begin, std::int64_t end, std::int64_t most);

// One KV head of a run of keys or of values, [count, head_dim] in f32; codes times their scales, rounded once.
// Element is the type of kv_bits 16.
template <class Element>
RowsF32 cached_keys(const AttentionDecodeProblem& problem, const AttentionDecodeTensors& tensors, const TokenRun& run,
                    std::int64_t kv_head);
template <class Element>
RowsF32 cached_values(const AttentionDecodeProblem& problem, const AttentionDecodeTensors& tensors, const TokenRun& run,
                      std::int64_t kv_head);

}  // namespace inferometer
