// attention_decode / cpu.naive: the equation over a contiguous or a paged KV cache, one KV head of one sequence at a
// time: O = softmax(S + M) V with S = Q K^T / sqrt(d) for the rows that share the head (Vaswani et al. 2017, eq. 1).
// With a soft cap c, S becomes c tanh(S / c) (Gemma 2, Gemma Team 2024, section 2).
//
//   in   q            [batch, q_len, q_heads, head_dim]                                dtype
//        k, v         the cache: dtype, or codes with kv_scales                        layout.hpp
//   out  o            [batch, q_len, q_heads, head_dim]                                dtype
//        lse          [batch, q_heads, q_len]                                          f32
//
// Keys and values are converted to f32 a few tokens at a time; all arithmetic is in f32. The scores of a row are held
// whole. Bound by memory: every key and value is read once for all q_len * q_heads / kv_heads rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/operator/parallel.hpp"
#include "harness/operator/variant.hpp"
#include "reference/attention_decode/cached_rows.hpp"
#include "reference/attention_decode/problem.hpp"
#include "reference/common/eigen.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;
using Tensors = AttentionDecodeTensors;

constexpr std::int64_t kTokensAtOnce = 256;  // with head_dim 128 they take 128 KiB in f32: they stay in an L2 cache
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Element>
void attend(const Problem& p, const Tensors& t, std::int64_t sequence, std::int64_t kv_head) {
  using Stored = Eigen::Matrix<Element, 1, Eigen::Dynamic>;
  const std::int64_t group = p.q_heads / p.kv_heads;
  const std::int64_t length = t.seq_lens[sequence];
  // The first query sees [oldest, length - q_len], each one after it a key more, and a key less of a window.
  const std::int64_t oldest =
      p.window_left < 0 ? 0 : std::clamp<std::int64_t>(length - p.q_len - p.window_left, 0, length);
  const std::int64_t keys = length - oldest;
  const std::vector<TokenRun> runs = token_runs(p, t, sequence, oldest, length, kTokensAtOnce);
  // Row r is query r / group of head kv_head * group + r % group.
  const Eigen::Index rows = p.q_len * group;
  const auto offset = [&](Eigen::Index r) {
    return ((sequence * p.q_len + r / group) * p.q_heads + kv_head * group + r % group) * p.head_dim;
  };
  RowsF32 q(rows, p.head_dim);
  for (Eigen::Index r = 0; r < rows; ++r)
    q.row(r) =
        Eigen::Map<const Stored>(static_cast<const Element*>(t.q) + offset(r), p.head_dim).template cast<float>();

  // S = Q K^T / sqrt(d)  [rows, keys]
  RowsF32 s(rows, keys);
  for (const TokenRun& run : runs)
    s.middleCols(run.token - oldest, run.count).noalias() = q * cached_keys<Element>(p, t, run, kv_head).transpose();
  s /= std::sqrt(static_cast<float>(p.head_dim));
  if (const auto c = static_cast<float>(p.soft_cap); c > 0)
    s = s.unaryExpr([c](float score) { return c * std::tanh(score / c); });

  // P = exp(S + M - m), l = its row sums.
  Eigen::VectorXf m = Eigen::VectorXf::Constant(rows, -kInfinity);
  Eigen::VectorXf l = Eigen::VectorXf::Zero(rows);
  for (Eigen::Index r = 0; r < rows; ++r) {
    const std::int64_t position = length - p.q_len + r / group;  // negative: before the first token
    const std::int64_t first = p.window_left < 0 ? 0 : std::max<std::int64_t>(0, position - p.window_left - oldest);
    const std::int64_t end = std::max<std::int64_t>(0, position + 1 - oldest);
    s.row(r).head(first).setZero();
    s.row(r).tail(keys - end).setZero();
    auto seen = s.row(r).segment(first, end - first).array();
    if (seen.size() == 0) continue;
    m[r] = seen.maxCoeff();
    seen = (seen - m[r]).exp();
    l[r] = seen.sum();
  }

  // O = P V / l  [rows, head_dim]
  RowsF32 o = RowsF32::Zero(rows, p.head_dim);
  for (const TokenRun& run : runs)
    o.noalias() += s.middleCols(run.token - oldest, run.count) * cached_values<Element>(p, t, run, kv_head);
  for (Eigen::Index r = 0; r < rows; ++r) {
    if (l[r] > 0) o.row(r) /= l[r];
    Eigen::Map<Stored>(static_cast<Element*>(t.o) + offset(r), p.head_dim) = o.row(r).template cast<Element>();
    const std::int64_t head = kv_head * group + r % group;
    t.lse[(sequence * p.q_heads + head) * p.q_len + r / group] = m[r] + std::log(l[r]);  // no key: -inf
  }
}

template <class Element>
void run_all(const Problem& p, const Tensors& t, int threads) {
  parallel_for(p.batch * p.kv_heads, threads,
               [&](std::int64_t pair) { attend<Element>(p, t, pair / p.kv_heads, pair % p.kv_heads); });
}

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  if (p.dtype == Dtype::f16) run_all<Eigen::half>(p, t, launch.threads);
  if (p.dtype == Dtype::bf16) run_all<Eigen::bfloat16>(p, t, launch.threads);
  if (p.dtype == Dtype::f32) run_all<float>(p, t, launch.threads);
}

const RegisterVariant<AttentionDecode> registered{{
    .name = "cpu.naive",
    .summary = "the equation in f32, any cache and any bits, threads over sequences and KV heads",
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
