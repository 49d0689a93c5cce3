#include "reference/attention_decode/expected.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/judge/sample.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/attention_decode/judged_rows.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kTokensAtOnce = 256;    // keys or values held in double precision
constexpr std::int64_t kRowsPerPair = 16;      // of the q_len * group rows that share a KV head
constexpr std::int64_t kMostPairs = 64;        // far more than a wrong tile could hide from
constexpr std::int64_t kWork = 1'000'000'000;  // multiply-adds in all: a few tenths of a second of one core
constexpr std::int64_t kElementWork = 16;      // to generate an element of K or V costs as much as so many

struct Pair {
  std::int64_t sequence;
  std::int64_t kv_head;
};

std::vector<Pair> sample_pairs(const Problem& p, const std::vector<std::int32_t>& lengths, std::uint64_t seed) {
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  std::int64_t sum = 0;
  for (const std::int32_t length : lengths) sum += length;
  const std::int64_t rows = std::min(kRowsPerPair, p.q_len * (p.q_heads / p.kv_heads));
  const std::int64_t pair_work = std::max<std::int64_t>(1, sum / p.batch * 2 * p.head_dim * (rows + kElementWork));
  const std::int64_t count = std::clamp<std::int64_t>(kWork / pair_work, 2, kMostPairs);
  std::vector<std::int64_t> flat = sample_rows(p.batch * p.kv_heads, count, seed);
  flat.push_back((shortest - lengths.begin()) * p.kv_heads);
  flat.push_back((longest - lengths.begin() + 1) * p.kv_heads - 1);
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  std::vector<Pair> pairs;
  pairs.reserve(flat.size());
  for (const std::int64_t pair : flat) pairs.push_back({pair / p.kv_heads, pair % p.kv_heads});
  return pairs;
}

// Keys that a query sees: [first, end), inclusive of its own and of window_left before it.
struct Visible {
  std::int64_t first;
  std::int64_t end;
};

// Query i is token length - q_len + i of its sequence.
Visible visible_to(const Problem& p, std::int64_t query, std::int64_t length) {
  const std::int64_t own = length - p.q_len + query;
  const std::int64_t first = p.window_left < 0 ? 0 : own - p.window_left;
  const std::int64_t end = std::clamp<std::int64_t>(own + 1, 0, length);
  return {.first = std::clamp<std::int64_t>(first, 0, end), .end = end};
}

// softmax(S + M) V with S = Q K^T / sqrt(d), or its soft cap c tanh(S / c), for the sampled rows of one pair.
std::vector<ExpectedSpan> expect_pair(const Problem& p, const Inputs& inputs, Pair pair, std::int64_t length,
                                      std::uint64_t seed) {
  const std::int64_t group = p.q_heads / p.kv_heads;
  const std::vector<std::int64_t> sampled = sample_rows(p.q_len * group, kRowsPerPair, seed);
  const auto rows = static_cast<Eigen::Index>(sampled.size());
  const auto query_of = [&](Eigen::Index r) { return sampled[static_cast<std::size_t>(r)] / group; };
  const auto row_of = [&](Eigen::Index r) {  // in [batch, q_len, q_heads]
    const std::int64_t head = pair.kv_head * group + sampled[static_cast<std::size_t>(r)] % group;
    return (pair.sequence * p.q_len + query_of(r)) * p.q_heads + head;
  };

  RowsF64 q(rows, p.head_dim);
  for (Eigen::Index r = 0; r < rows; ++r) {
    const std::vector<float> row = inputs.read("q", row_of(r) * p.head_dim, p.head_dim);
    q.row(r) = Eigen::Map<const Eigen::RowVectorXf>(row.data(), p.head_dim).cast<double>();
  }
  const auto read = [&](KeyOrValue which, std::int64_t begin, std::int64_t count) {
    return read_judged_rows(p, inputs, which, pair.sequence, pair.kv_head, begin, count);
  };
  const std::int64_t oldest = visible_to(p, 0, length).first;  // later queries see none before it
  RowsF64 s = RowsF64::Zero(rows, length);
  for (std::int64_t j = oldest; j < length; j += kTokensAtOnce) {
    const std::int64_t count = std::min(kTokensAtOnce, length - j);
    s.middleCols(j, count) = q * read(KeyOrValue::key, j, count).transpose();
  }
  s /= std::sqrt(static_cast<double>(p.head_dim));
  if (p.soft_cap > 0) s = p.soft_cap * (s / p.soft_cap).array().tanh().matrix();
  Eigen::VectorXd m = Eigen::VectorXd::Constant(rows, -kInfinity);
  Eigen::VectorXd l = Eigen::VectorXd::Zero(rows);
  for (Eigen::Index r = 0; r < rows; ++r) {
    const auto [first, end] = visible_to(p, query_of(r), length);
    s.row(r).head(first).setZero();  // exp(-infinity)
    s.row(r).tail(length - end).setZero();
    if (first == end) continue;
    auto seen = s.row(r).segment(first, end - first).array();
    m[r] = seen.maxCoeff();
    seen = (seen - m[r]).exp();
    l[r] = seen.sum();
  }
  RowsF64 o = RowsF64::Zero(rows, p.head_dim);
  for (std::int64_t j = oldest; j < length; j += kTokensAtOnce) {
    const std::int64_t count = std::min(kTokensAtOnce, length - j);
    o += s.middleCols(j, count) * read(KeyOrValue::value, j, count);
  }

  std::vector<ExpectedSpan> spans;
  for (Eigen::Index r = 0; r < rows; ++r) {
    if (l[r] > 0) o.row(r) /= l[r];
    const std::int64_t head = row_of(r) % p.q_heads;
    const double lse = m[r] + std::log(l[r]);  // both -infinity for a row without keys
    spans.push_back({.tensor = "o",
                     .begin = row_of(r) * p.head_dim,
                     .values = std::vector<double>(o.row(r).data(), o.row(r).data() + p.head_dim)});
    spans.push_back(
        {.tensor = "lse", .begin = (pair.sequence * p.q_heads + head) * p.q_len + query_of(r), .values = {lse}});
  }
  return spans;
}

}  // namespace

std::vector<ExpectedSpan> expect_attention_decode(const AttentionDecodeProblem& problem, const Inputs& inputs,
                                                  std::uint64_t seed, int threads) {
  const std::vector<std::int32_t>& lengths = inputs.integers("seq_lens");
  const std::vector<Pair> pairs = sample_pairs(problem, lengths, seed);
  std::vector<std::vector<ExpectedSpan>> answers(pairs.size());
  parallel_for(std::ssize(pairs), threads, [&](std::int64_t pair) {
    const auto i = static_cast<std::size_t>(pair);
    answers[i] = expect_pair(problem, inputs, pairs[i], lengths[static_cast<std::size_t>(pairs[i].sequence)], seed + i);
  });

  std::vector<ExpectedSpan> spans;
  for (std::vector<ExpectedSpan>& answer : answers)
    spans.insert(spans.end(), std::make_move_iterator(answer.begin()), std::make_move_iterator(answer.end()));
  return spans;
}

}  // namespace inferometer
