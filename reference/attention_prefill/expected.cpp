#include "reference/attention_prefill/expected.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "harness/judge/sample.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/kv_cache/judged_cache.hpp"

namespace inferometer {
namespace {

using Problem = AttentionPrefillProblem;
using Head = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMultiplyAdds = std::int64_t{1} << 29;  // of a whole sample: about 0.2 s of one core
constexpr std::int64_t kQueriesPerHead = 16;

// Where the queries and the keys of a sequence stand among those of all.
struct Sequence {
  std::int64_t index;
  std::int64_t first_q;
  std::int64_t q_len;
  std::int64_t first_key;  // contiguous
  std::int64_t kv_len;
};

// Those that have queries.
std::vector<Sequence> sequences_of(const Problem& p, const Inputs& inputs) {
  std::vector<Sequence> sequences;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    if (!p.ragged()) {
      sequences.push_back(
          {.index = b, .first_q = b * p.q_len, .q_len = p.q_len, .first_key = b * p.kv_len, .kv_len = p.kv_len});
      continue;
    }
    const auto at = static_cast<std::size_t>(b);
    const std::vector<std::int32_t>& q = inputs.integers("cu_q_lens");
    const std::vector<std::int32_t>& kv = inputs.integers("cu_kv_lens");
    if (q[at] == q[at + 1]) continue;
    sequences.push_back(
        {.index = b, .first_q = q[at], .q_len = q[at + 1] - q[at], .first_key = kv[at], .kv_len = kv[at + 1] - kv[at]});
  }
  return sequences;
}

// One head of K or V of a sequence, [kv_len, dim].
Head read_head(const Problem& p, const Inputs& inputs, std::string_view name, const Sequence& sequence,
               std::int64_t kv_head, int threads) {
  const bool keys = name == "k";
  const std::int64_t dim = keys ? p.head_dim : p.v_dim();
  const std::int64_t stride = keys ? p.k_stride() : p.v_stride();
  Head head(sequence.kv_len, dim);
  parallel_for(sequence.kv_len, threads, [&](std::int64_t j) {
    const JudgedSlot slot = judged_slot(inputs, p.block_size, p.max_blocks(), sequence.index, j);
    const std::int64_t row = p.paged() ? slot.page * p.block_size + slot.within : sequence.first_key + j;
    head.row(j) = read_judged_row(inputs, name, row * stride + kv_head * dim, dim).cast<float>();
  });
  return head;
}

// Keys that a query sees: [first, end), its own and `window_left` before it.
struct Visible {
  std::int64_t first;
  std::int64_t end;
};

Visible visible_to(const Problem& p, const Sequence& sequence, std::int64_t query) {
  if (!p.causal) return {.first = 0, .end = sequence.kv_len};
  const std::int64_t own = query + sequence.kv_len - sequence.q_len;
  const std::int64_t end = std::clamp<std::int64_t>(own + 1, 0, sequence.kv_len);
  const std::int64_t first = p.window_left < 0 ? 0 : own - p.window_left;
  return {.first = std::clamp<std::int64_t>(first, 0, end), .end = end};
}

struct RowAnswer {
  std::vector<double> o;
  double lse = -kInfinity;
};

// softmax(s) V and m + log(sum exp(s - m)) over the visible keys, s = K q / sqrt(d) or its soft cap c tanh(s / c).
RowAnswer attend(const Problem& p, const Eigen::VectorXd& q, const Head& k, const Head& v, const Visible& visible) {
  RowAnswer answer{.o = std::vector<double>(static_cast<std::size_t>(p.v_dim()), 0.0)};
  const Eigen::Index keys = visible.end - visible.first;
  if (keys == 0) return answer;
  Eigen::VectorXd s(keys);
  for (Eigen::Index j = 0; j < keys; ++j)
    s[j] = k.row(visible.first + j).transpose().cast<double>().dot(q) / std::sqrt(static_cast<double>(p.head_dim));
  if (p.soft_cap > 0) s = p.soft_cap * (s / p.soft_cap).array().tanh().matrix();
  const double m = s.maxCoeff();
  const Eigen::VectorXd weights = (s.array() - m).exp();
  const double l = weights.sum();
  Eigen::Map<Eigen::VectorXd> o(answer.o.data(), p.v_dim());
  for (Eigen::Index j = 0; j < keys; ++j) o += weights[j] * v.row(visible.first + j).transpose().cast<double>();
  o /= l;
  answer.lse = m + std::log(l);
  return answer;
}

// A sequence and a KV head, as index into `sequences` times kv_heads plus head.
std::vector<std::int64_t> sample_pairs(const Problem& p, const std::vector<Sequence>& sequences, std::int64_t rows,
                                       std::uint64_t seed) {
  const std::int64_t wanted = std::max<std::int64_t>(4, rows / (kQueriesPerHead * (p.q_heads / p.kv_heads)));
  std::vector<std::int64_t> pairs = sample_rows(std::ssize(sequences) * p.kv_heads, wanted, seed);
  if (p.ragged()) {
    const auto [fewest, most] = std::minmax_element(
        sequences.begin(), sequences.end(), [](const Sequence& a, const Sequence& b) { return a.kv_len < b.kv_len; });
    pairs.push_back((fewest - sequences.begin()) * p.kv_heads);
    pairs.push_back((most - sequences.begin() + 1) * p.kv_heads - 1);
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  }
  return pairs;
}

}  // namespace

std::vector<ExpectedSpan> expect_attention_prefill(const Problem& p, const Inputs& inputs, std::uint64_t seed,
                                                   int threads) {
  const std::vector<Sequence> sequences = sequences_of(p, inputs);
  const std::int64_t mean_kv = std::max<std::int64_t>(1, p.total_kv() / p.batch);
  const std::int64_t rows = std::clamp<std::int64_t>(kMultiplyAdds / (mean_kv * (p.head_dim + p.v_dim())), 1, 4096);
  const std::int64_t group = p.q_heads / p.kv_heads;
  const std::vector<std::int64_t> pairs = sample_pairs(p, sequences, rows, seed);
  const auto pair_count = std::ssize(pairs);
  const auto heads = sample_rows(group, std::max<std::int64_t>(2, rows / (kQueriesPerHead * pair_count)), seed + 1);
  const auto head_count = std::ssize(heads);

  std::vector<ExpectedSpan> spans;
  for (const std::int64_t pair : pairs) {
    const Sequence& sequence = sequences[static_cast<std::size_t>(pair / p.kv_heads)];
    const std::int64_t kv_head = pair % p.kv_heads;
    const Head k = read_head(p, inputs, "k", sequence, kv_head, threads);
    const Head v = read_head(p, inputs, "v", sequence, kv_head, threads);
    // Other queries in every pair, so that together they cover more places.
    const auto queries = sample_rows(sequence.q_len, std::max(kQueriesPerHead, rows / (pair_count * head_count)),
                                     seed + 2 + static_cast<std::uint64_t>(pair));
    const std::size_t first = spans.size();
    const std::size_t count = heads.size() * queries.size();
    spans.resize(first + 2 * count);
    parallel_for(static_cast<std::int64_t>(count), threads, [&](std::int64_t task) {
      const auto index = static_cast<std::size_t>(task);
      const std::int64_t head = kv_head * group + heads[index / queries.size()];
      const std::int64_t i = queries[index % queries.size()];
      const std::int64_t row = (sequence.first_q + i) * p.q_heads + head;
      const Eigen::VectorXd q = read_judged_row(inputs, "q", row * p.head_dim, p.head_dim).transpose();
      RowAnswer answer = attend(p, q, k, v, visible_to(p, sequence, i));
      const std::int64_t lse =
          p.ragged() ? head * p.total_q() + sequence.first_q + i : (sequence.index * p.q_heads + head) * p.q_len + i;
      spans[first + 2 * index] = {.tensor = "o", .begin = row * p.v_dim(), .values = std::move(answer.o)};
      spans[first + 2 * index + 1] = {.tensor = "lse", .begin = lse, .values = {answer.lse}};
    });
  }
  return spans;
}

}  // namespace inferometer
