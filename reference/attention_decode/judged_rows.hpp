// Keys and values as the judge of attention_decode sees them: read back from the seed, in double precision. Places and
// codes are computed here from what layout.hpp says, apart from what kernels and cpu.naive use.
#pragma once

#include <cstdint>

#include "harness/operator/tensor.hpp"
#include "reference/attention_decode/problem.hpp"
#include "reference/common/eigen.hpp"
#include "reference/kv_cache/judged_cache.hpp"

namespace inferometer {

enum class KeyOrValue : std::uint8_t { key, value };

using RowsF64 = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The token in one slot, of one KV head; dequantised where the cache holds codes.
Eigen::RowVectorXd read_judged_token(const AttentionDecodeProblem& problem, const Inputs& inputs, KeyOrValue which,
                                     const JudgedSlot& slot, std::int64_t kv_head);

// Tokens [begin, begin + count) of one KV head of one sequence, [count, head_dim]. The block table is
// read from `inputs`.
RowsF64 read_judged_rows(const AttentionDecodeProblem& problem, const Inputs& inputs, KeyOrValue which,
                         std::int64_t sequence, std::int64_t kv_head, std::int64_t begin, std::int64_t count);

}  // namespace inferometer
