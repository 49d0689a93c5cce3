#include "reference/kv_append/expected.hpp"

#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

#include "harness/judge/sample.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/kv_append/cache_slots.hpp"
#include "reference/kv_cache/quantize.hpp"

namespace inferometer {
namespace {

using Problem = KvAppendProblem;

// With head_dim 128 the sample is a million elements of K at most: a few hundredths of a second of one core.
constexpr std::int64_t kMostTokens = 512;
constexpr std::int64_t kMostHeads = 16;

// One new token and head.
struct Row {
  std::int64_t sequence;
  std::int64_t token;  // of the new ones of its sequence
  std::int64_t head;
};

std::vector<Row> sample(const Problem& p, std::uint64_t seed) {
  const std::vector<std::int64_t> heads = sample_rows(p.kv_heads, kMostHeads, seed + 1);
  std::vector<Row> rows;
  for (const std::int64_t token : sample_rows(p.batch * p.new_tokens, kMostTokens, seed))
    for (const std::int64_t head : heads)
      rows.push_back({.sequence = token / p.new_tokens, .token = token % p.new_tokens, .head = head});
  return rows;
}

std::vector<float> read_new(const Problem& p, const Inputs& inputs, std::string_view name, const Row& row) {
  const std::int64_t index = (row.sequence * p.new_tokens + row.token) * p.kv_heads + row.head;
  return inputs.read(name, index * p.head_dim, p.head_dim);
}

// Number of the row in the cache: of [.., kv_heads, head_dim] with kv_bits 16, else of [.., kv_heads, slots, row].
std::int64_t cache_row(const Problem& p, const Inputs& inputs, const Row& row) {
  const auto sequence = static_cast<std::size_t>(row.sequence);
  const std::int64_t position = inputs.integers("seq_lens")[sequence] + row.token;
  std::int64_t area = row.sequence;
  std::int64_t slot = position;
  if (p.block_size != 0) {
    const auto entry = static_cast<std::size_t>(row.sequence * p.max_blocks() + position / p.block_size);
    area = inputs.integers("block_table")[entry];
    slot = position % p.block_size;
  }
  return p.kv_bits == 16 ? (area * area_slots(p) + slot) * p.kv_heads + row.head
                         : (area * p.kv_heads + row.head) * area_slots(p) + slot;
}

template <class Values>
ExpectedSpan span_of(std::string_view tensor, std::int64_t begin, const Values& values) {
  return {.tensor = std::string(tensor), .begin = begin, .values = {std::begin(values), std::end(values)}};
}

// K and V of one row of a quantised cache.
std::vector<ExpectedSpan> expect_codes(const Problem& p, const Inputs& inputs, const Row& row) {
  const KvCode code = kv_code(p.kv_bits, p.kv_format);
  const std::int64_t at = cache_row(p, inputs, row);
  std::vector<ExpectedSpan> spans;
  std::vector<double> scales(static_cast<std::size_t>(2 * p.groups()));  // [groups, 2]
  for (const std::size_t v : {0, 1}) {
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(kv_code_bytes(code, p.head_dim)));
    std::vector<std::uint16_t> own(static_cast<std::size_t>(p.groups()));
    quantize_kv_row(code, read_new(p, inputs, v == 0 ? "k_new" : "v_new", row), codes, own);
    for (std::size_t group = 0; group < own.size(); ++group) scales[2 * group + v] = f16_value(own[group]);
    spans.push_back(span_of(v == 0 ? "k" : "v", at * kv_row_bytes(code, p.head_dim), codes));
  }
  spans.push_back(span_of("kv_scales", at * 2 * p.groups(), scales));
  return spans;
}

std::vector<ExpectedSpan> expect_row(const Problem& p, const Inputs& inputs, const Row& row) {
  if (p.kv_bits != 16) return expect_codes(p, inputs, row);
  const std::int64_t at = cache_row(p, inputs, row) * p.head_dim;
  return {span_of("k", at, read_new(p, inputs, "k_new", row)), span_of("v", at, read_new(p, inputs, "v_new", row))};
}

// Squares of what quantising changed and of what there was.
struct Squares {
  double error = 0;
  double value = 0;
};

Squares squares_of(const Problem& p, const Inputs& inputs, std::span<const void* const> tensors, const Row& row) {
  const KvCode code = kv_code(p.kv_bits, p.kv_format);
  const std::int64_t at = cache_row(p, inputs, row);
  const auto* const scales = static_cast<const std::uint16_t*>(tensors[inputs.index_of("kv_scales")]);
  std::vector<std::uint16_t> own(static_cast<std::size_t>(p.groups()));
  std::vector<float> worth(static_cast<std::size_t>(p.head_dim));
  Squares sums;
  for (const std::int64_t v : {0, 1}) {
    for (std::int64_t group = 0; group < p.groups(); ++group)
      own[static_cast<std::size_t>(group)] = scales[(at * p.groups() + group) * 2 + v];
    const auto* const cache = static_cast<const std::uint8_t*>(tensors[inputs.index_of(v == 0 ? "k" : "v")]);
    const std::span codes(cache + at * kv_row_bytes(code, p.head_dim),
                          static_cast<std::size_t>(kv_code_bytes(code, p.head_dim)));
    dequantize_kv_row(code, codes, own, worth);
    const std::vector<float> given = read_new(p, inputs, v == 0 ? "k_new" : "v_new", row);
    for (std::size_t d = 0; d < given.size(); ++d) {
      const double x = given[d];
      sums.error += (worth[d] - x) * (worth[d] - x);
      sums.value += x * x;
    }
  }
  return sums;
}

}  // namespace

std::vector<ExpectedSpan> expect_kv_append(const KvAppendProblem& problem, const Inputs& inputs, std::uint64_t seed,
                                           int threads) {
  const std::vector<Row> rows = sample(problem, seed);
  std::vector<std::vector<ExpectedSpan>> answers(rows.size());
  parallel_for(std::ssize(rows), threads, [&](std::int64_t row) {
    const auto i = static_cast<std::size_t>(row);
    answers[i] = expect_row(problem, inputs, rows[i]);
  });
  std::vector<ExpectedSpan> spans;
  for (std::vector<ExpectedSpan>& answer : answers)
    spans.insert(spans.end(), std::make_move_iterator(answer.begin()), std::make_move_iterator(answer.end()));
  return spans;
}

std::vector<Metric> kv_append_metrics(const KvAppendProblem& problem, const Inputs& inputs,
                                      std::span<const void* const> tensors, int threads) {
  if (problem.kv_bits == 16) return {};
  const std::vector<Row> rows = sample(problem, 1);
  std::vector<Squares> squares(rows.size());
  parallel_for(std::ssize(rows), threads, [&](std::int64_t row) {
    const auto i = static_cast<std::size_t>(row);
    squares[i] = squares_of(problem, inputs, tensors, rows[i]);
  });
  Squares sums;
  for (const Squares& square : squares) {
    sums.error += square.error;
    sums.value += square.value;
  }
  return {{.name = "storage_rel_error", .value = std::sqrt(sums.error / sums.value)}};
}

}  // namespace inferometer
