// attention_prefill: fields, tensors, cost, and the judge's answer in double precision.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/judge/sample.hpp"
#include "harness/judge/tolerance.hpp"
#include "harness/operator/operator.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "reference/common/eigen.hpp"

namespace inferometer {
namespace {

using Problem = AttentionPrefillProblem;
using Tensors = AttentionPrefillTensors;

const std::vector<Field<Problem>> kFields = {
    {.name = "batch", .member = &Problem::batch, .doc = "sequences"},
    {.name = "q_heads", .member = &Problem::q_heads, .doc = "query heads, a multiple of kv_heads"},
    {.name = "kv_heads", .member = &Problem::kv_heads, .doc = "key and value heads"},
    {.name = "q_len", .member = &Problem::q_len, .doc = "queries per sequence, in tokens"},
    {.name = "kv_len", .member = &Problem::kv_len, .doc = "keys per sequence, in tokens"},
    {.name = "head_dim",
     .member = &Problem::head_dim,
     .doc = "elements of one head, a multiple of 8",
     .min = 8,
     .max = 256},
    {.name = "causal", .member = &Problem::causal, .doc = "query i sees keys j <= i + kv_len - q_len only"},
    {.name = "dtype",
     .member = &Problem::dtype,
     .doc = "element type of Q, K, V and O",
     .dtypes = {Dtype::f16, Dtype::bf16, Dtype::f32}},
};

void validate(const Problem& p) {
  if (p.head_dim % 8 != 0)
    throw ProblemError("head_dim", "head_dim must be a multiple of 8, got " + std::to_string(p.head_dim));
  if (p.q_heads % p.kv_heads != 0) {
    throw ProblemError("q_heads", "q_heads must be a multiple of kv_heads, got " + std::to_string(p.q_heads) + " and " +
                                      std::to_string(p.kv_heads));
  }
  // In bytes of f32, so that no variant's offset into a tensor, or into the scores of all heads, can overflow.
  checked_product("q_len", {p.batch, p.q_len, p.q_heads, p.head_dim, 4});
  checked_product("kv_len", {p.batch, p.kv_len, p.kv_heads, p.head_dim, 4});
  checked_product("kv_len", {p.batch, p.q_heads, p.q_len, p.kv_len, 4});
}

std::vector<TensorSpec> tensors(const Problem& p) {
  return {{.name = "q", .dtype = p.dtype, .shape = {p.batch, p.q_len, p.q_heads, p.head_dim}},
          {.name = "k", .dtype = p.dtype, .shape = {p.batch, p.kv_len, p.kv_heads, p.head_dim}},
          {.name = "v", .dtype = p.dtype, .shape = {p.batch, p.kv_len, p.kv_heads, p.head_dim}},
          {.name = "o", .role = Role::output, .dtype = p.dtype, .shape = {p.batch, p.q_len, p.q_heads, p.head_dim}},
          {.name = "lse", .role = Role::output, .dtype = Dtype::f32, .shape = {p.batch, p.q_heads, p.q_len}}};
}

Tensors bind(const Problem&, std::span<void* const> pointers) {
  return {
      .q = pointers[0], .k = pointers[1], .v = pointers[2], .o = pointers[3], .lse = static_cast<float*>(pointers[4])};
}

// Two products of 2 head_dim FLOPs for each visible (query, key) pair of each query head: 4 B Hq D pairs. Causal: the
// last n = min(q_len, kv_len) queries see kv_len - n + 1, ..., kv_len keys and the others none, so
// pairs = n kv_len - n (n - 1) / 2.
Work work(const Problem& p) {
  const auto n = static_cast<double>(std::min(p.q_len, p.kv_len));
  const auto kv_len = static_cast<double>(p.kv_len);
  const double pairs = p.causal ? n * kv_len - n * (n - 1) / 2 : static_cast<double>(p.q_len) * kv_len;
  double bytes = 0;
  for (const TensorSpec& spec : tensors(p)) bytes += static_cast<double>(spec.bytes());
  return {.flops = 4.0 * static_cast<double>(p.batch * p.q_heads * p.head_dim) * pairs,
          .bytes = bytes,
          .arithmetic = p.dtype == Dtype::f32 ? Arithmetic::f32 : Arithmetic::f16_matmul};
}

using HeadMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// One head of K or V, [kv_len, head_dim].
HeadMatrix read_head(const Problem& p, const Inputs& inputs, std::string_view name, std::int64_t sequence,
                     std::int64_t kv_head, int threads) {
  HeadMatrix head(p.kv_len, p.head_dim);
  parallel_for(p.kv_len, threads, [&](std::int64_t j) {
    const std::int64_t begin = ((sequence * p.kv_len + j) * p.kv_heads + kv_head) * p.head_dim;
    std::ranges::copy(inputs.read(name, begin, p.head_dim), head.row(j).data());
  });
  return head;
}

struct RowAnswer {
  std::vector<double> o;
  double lse = -std::numeric_limits<double>::infinity();
};

// softmax(K q / sqrt(d)) V and m + log(sum exp(s - m)) over the first `keys` keys.
RowAnswer attend(const std::vector<float>& query, const HeadMatrix& k, const HeadMatrix& v, std::int64_t keys) {
  const auto d = static_cast<Eigen::Index>(query.size());
  RowAnswer answer{.o = std::vector<double>(query.size(), 0.0)};
  if (keys == 0) return answer;
  const Eigen::VectorXd q = Eigen::Map<const Eigen::VectorXf>(query.data(), d).cast<double>();
  Eigen::VectorXd s(keys);
  for (Eigen::Index j = 0; j < keys; ++j)
    s[j] = k.row(j).transpose().cast<double>().dot(q) / std::sqrt(static_cast<double>(d));
  const double m = s.maxCoeff();
  const Eigen::VectorXd weights = (s.array() - m).exp();
  const double l = weights.sum();
  Eigen::Map<Eigen::VectorXd> o(answer.o.data(), d);
  for (Eigen::Index j = 0; j < keys; ++j) o += weights[j] * v.row(j).transpose().cast<double>();
  o /= l;
  answer.lse = m + std::log(l);
  return answer;
}

// Rows of the sample: all of a small problem; of a large one, at least 16 queries of at least two query heads of at
// least four (sequence, KV head) pairs.
std::vector<ExpectedSpan> expect(const Problem& p, const Inputs& inputs, std::uint64_t seed, int threads) {
  constexpr std::int64_t kMultiplyAdds = std::int64_t{1} << 29;  // about 0.2 s of one core
  constexpr std::int64_t kQueriesPerHead = 16;
  const std::int64_t rows = std::clamp<std::int64_t>(kMultiplyAdds / (2 * p.kv_len * p.head_dim), 1, 4096);
  const std::int64_t group = p.q_heads / p.kv_heads;
  const auto pairs =
      sample_rows(p.batch * p.kv_heads, std::max<std::int64_t>(4, rows / (kQueriesPerHead * group)), seed);
  const auto pair_count = static_cast<std::int64_t>(pairs.size());
  const auto heads = sample_rows(group, std::max<std::int64_t>(2, rows / (kQueriesPerHead * pair_count)), seed + 1);
  const auto head_count = static_cast<std::int64_t>(heads.size());

  std::vector<ExpectedSpan> spans;
  for (const std::int64_t pair : pairs) {
    const std::int64_t sequence = pair / p.kv_heads;
    const std::int64_t kv_head = pair % p.kv_heads;
    const HeadMatrix k = read_head(p, inputs, "k", sequence, kv_head, threads);
    const HeadMatrix v = read_head(p, inputs, "v", sequence, kv_head, threads);
    // Other queries in every pair, so that together they cover more places.
    const auto queries = sample_rows(p.q_len, std::max(kQueriesPerHead, rows / (pair_count * head_count)),
                                     seed + 2 + static_cast<std::uint64_t>(pair));
    const std::size_t first = spans.size();
    const std::size_t count = heads.size() * queries.size();
    spans.resize(first + 2 * count);
    parallel_for(static_cast<std::int64_t>(count), threads, [&](std::int64_t task) {
      const auto index = static_cast<std::size_t>(task);
      const std::int64_t head = kv_head * group + heads[index / queries.size()];
      const std::int64_t i = queries[index % queries.size()];
      const std::int64_t begin = ((sequence * p.q_len + i) * p.q_heads + head) * p.head_dim;
      const std::int64_t keys = p.causal ? std::clamp<std::int64_t>(i + p.kv_len - p.q_len + 1, 0, p.kv_len) : p.kv_len;
      RowAnswer answer = attend(inputs.read("q", begin, p.head_dim), k, v, keys);
      spans[first + 2 * index] = {.tensor = "o", .begin = begin, .values = std::move(answer.o)};
      spans[first + 2 * index + 1] = {
          .tensor = "lse", .begin = (sequence * p.q_heads + head) * p.q_len + i, .values = {answer.lse}};
    });
  }
  return spans;
}

// S may be held in the inputs' type, as materialised attention in that type holds it.
Tolerance tolerance(const Problem& p, std::string_view tensor) {
  return tensor == "lse" ? log_sum_exp_tolerance(p.dtype, p.head_dim, p.kv_len)
                         : attention_output_tolerance(p.dtype, p.head_dim, p.kv_len);
}

const RegisterOperator<AttentionPrefill> registered{{
    .summary = "softmax(Q K^T / sqrt(head_dim)) V per head, and the log-sum-exp of each row of scores",
    .fields = kFields,
    .aliases = {{.name = "seq_len", .targets = {"q_len", "kv_len"}}},
    .validate = &validate,
    .tensors = &tensors,
    .bind = &bind,
    .work = &work,
    .expect = &expect,
    .reference = "the equation in f64",
    .tolerance = &tolerance,
}};

}  // namespace
}  // namespace inferometer
