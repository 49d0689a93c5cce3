// attention_decode / cpu.naive: the equation over a contiguous or a paged KV cache, one KV head of one sequence at a
// time: O = softmax(Q K^T / sqrt(d) + M) V for the rows that share the head (Vaswani et al. 2017, eq. 1).
//
//   in   q            [batch, q_len, q_heads, head_dim]                                dtype
//        k, v         [batch, context, kv_heads, head_dim], or the blocks of a pool    dtype
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
#include "reference/attention_decode/problem.hpp"
#include "reference/common/eigen.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;
using Tensors = AttentionDecodeTensors;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t kTokensAtOnce = 256;  // with head_dim 128 they take 128 KiB in f32: they stay in an L2 cache
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Consecutive tokens of one sequence that lie one after the other in the cache.
struct Run {
  std::int64_t token;  // of the sequence
  std::int64_t slot;   // row of the cache, [slots, kv_heads, head_dim]
  std::int64_t count;
};

std::vector<Run> runs_of(const Problem& p, const Tensors& t, std::int64_t sequence) {
  const std::int64_t length = t.seq_lens[sequence];
  const std::int64_t longest = p.block_size == 0 ? kTokensAtOnce : p.block_size;
  std::vector<Run> runs;
  for (std::int64_t token = 0; token < length; token += longest) {
    std::int64_t slot = sequence * p.context + token;
    if (p.block_size != 0) slot = t.block_table[sequence * p.max_blocks() + token / p.block_size] * p.block_size;
    runs.push_back({.token = token, .slot = slot, .count = std::min(longest, length - token)});
  }
  return runs;
}

// One KV head of a run of keys or values, [count, head_dim], in f32.
template <class Element>
Matrix read_run(const Problem& p, const void* cache, const Run& run, std::int64_t kv_head) {
  using Stored = Eigen::Matrix<Element, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Element* first = static_cast<const Element*>(cache) + (run.slot * p.kv_heads + kv_head) * p.head_dim;
  return Eigen::Map<const Stored, 0, Eigen::OuterStride<>>(first, run.count, p.head_dim,
                                                           Eigen::OuterStride<>(p.kv_heads * p.head_dim))
      .template cast<float>();
}

template <class Element>
void attend(const Problem& p, const Tensors& t, std::int64_t sequence, std::int64_t kv_head) {
  using Stored = Eigen::Matrix<Element, 1, Eigen::Dynamic>;
  const std::int64_t group = p.q_heads / p.kv_heads;
  const std::int64_t length = t.seq_lens[sequence];
  const std::vector<Run> runs = runs_of(p, t, sequence);
  // Row r is query r / group of head kv_head * group + r % group.
  const Eigen::Index rows = p.q_len * group;
  const auto offset = [&](Eigen::Index r) {
    return ((sequence * p.q_len + r / group) * p.q_heads + kv_head * group + r % group) * p.head_dim;
  };
  Matrix q(rows, p.head_dim);
  for (Eigen::Index r = 0; r < rows; ++r)
    q.row(r) =
        Eigen::Map<const Stored>(static_cast<const Element*>(t.q) + offset(r), p.head_dim).template cast<float>();

  // S = Q K^T / sqrt(d)  [rows, length]
  Matrix s(rows, length);
  for (const Run& run : runs)
    s.middleCols(run.token, run.count).noalias() = q * read_run<Element>(p, t.k, run, kv_head).transpose();
  s /= std::sqrt(static_cast<float>(p.head_dim));

  // P = exp(S + M - m), l = its row sums. The last query sees every key, each one before it one less.
  Eigen::VectorXf m = Eigen::VectorXf::Constant(rows, -kInfinity);
  Eigen::VectorXf l = Eigen::VectorXf::Zero(rows);
  for (Eigen::Index r = 0; r < rows; ++r) {
    const std::int64_t hidden = std::min(length, p.q_len - 1 - r / group);
    s.row(r).tail(hidden).setZero();
    auto seen = s.row(r).head(length - hidden).array();
    if (seen.size() == 0) continue;
    m[r] = seen.maxCoeff();
    seen = (seen - m[r]).exp();
    l[r] = seen.sum();
  }

  // O = P V / l  [rows, head_dim]
  Matrix o = Matrix::Zero(rows, p.head_dim);
  for (const Run& run : runs)
    o.noalias() += s.middleCols(run.token, run.count) * read_run<Element>(p, t.v, run, kv_head);
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
    .summary = "the equation in f32, contiguous or through the block table, threads over sequences and KV heads",
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
