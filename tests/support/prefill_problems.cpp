#include "tests/support/prefill_problems.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include "harness/operator/generate.hpp"
#include "harness/operator/registry.hpp"

namespace inferometer::test {
namespace {

using Problem = AttentionPrefillProblem;

struct Token {
  std::int64_t sequence = -1;  // none
  std::int64_t index = 0;
};

// Which token each row of K and V holds.
std::vector<Token> tokens_of_rows(const Problem& p, std::vector<TensorSpec>& specs) {
  const std::vector<std::int64_t>& shape = tensor_named(specs, "k").shape;
  const std::int64_t rows = p.ragged() && !p.paged() ? shape[0] : shape[0] * shape[1];
  std::vector<Token> tokens(static_cast<std::size_t>(rows));
  std::int64_t before = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t t = 0; t < p.kv_len_of(b); ++t) {
      std::int64_t row = before + t;
      if (p.paged()) {
        const TensorSpec& table = tensor_named(specs, "block_table");
        const auto entry = static_cast<std::size_t>(b * table.shape[1] + t / p.block_size);
        row = std::get<std::vector<std::int32_t>>(table.source)[entry] * p.block_size + t % p.block_size;
      }
      tokens[static_cast<std::size_t>(row)] = {.sequence = b, .index = t};
    }
    before += p.kv_len_of(b);
  }
  return tokens;
}

std::vector<Token> tokens_of_queries(const Problem& p) {
  std::vector<Token> tokens;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t t = 0; t < p.q_len_of(b); ++t) tokens.push_back({.sequence = b, .index = t});
  return tokens;
}

void fill(TensorSpec& spec, const std::vector<Token>& tokens, std::int64_t used, const PrefillValue& value,
          float unused) {
  if (tokens.empty()) return;
  const std::int64_t row = spec.elements() / std::ssize(tokens);
  spec.unused.clear();
  spec.source = [=, tensor = spec.name[0]](std::int64_t i) {
    const Token token = tokens[static_cast<std::size_t>(i / row)];
    const bool pads = token.sequence < 0 || i % row >= used;
    return pads ? unused : value(tensor, token.sequence, token.index, i % row);
  };
}

}  // namespace

Fields prefill_fields(const Problem& p) { return find_operator("attention_prefill")->describe(&p); }

Problem with_lengths(Problem p, const std::vector<std::int64_t>& q_lens, const std::vector<std::int64_t>& kv_lens) {
  p.batch = std::ssize(q_lens);
  p.q_lens = q_lens;
  p.kv_lens = kv_lens;
  p.q_len = *std::max_element(q_lens.begin(), q_lens.end());
  p.kv_len = *std::max_element(kv_lens.begin(), kv_lens.end());
  return p;
}

Problem random_prefill(std::mt19937_64& random, std::int64_t longest) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const auto one_in = [&](std::int64_t n) { return between(1, n) == 1; };
  Problem p;
  p.batch = between(1, 4);
  p.kv_heads = between(1, 4);
  p.q_heads = p.kv_heads * between(1, 5);
  p.q_len = between(1, longest);
  p.kv_len = between(one_in(8) ? 0 : 1, longest);
  p.head_dim = one_in(2) ? 64 * between(1, 4) : 8 * between(1, 32);
  if (one_in(3)) p.v_head_dim = 8 * between(1, 32);
  p.causal = one_in(2);
  if (p.causal && one_in(2)) p.window_left = between(0, longest);
  if (one_in(3)) p.soft_cap = static_cast<double>(between(1, 200)) / 4;
  if (one_in(2)) p.block_size = one_in(2) ? std::int64_t{16} << between(0, 4) : between(1, 300);
  if (one_in(3)) p.k_row_stride = p.kv_heads * p.head_dim + 8 * between(0, 20);
  if (one_in(3)) p.v_row_stride = p.kv_heads * p.v_dim() + 8 * between(0, 20);
  p.dtype = one_in(2) ? Dtype::bf16 : Dtype::f16;
  if (one_in(2)) return p;
  std::vector<std::int64_t> q_lens;
  std::vector<std::int64_t> kv_lens;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    q_lens.push_back(one_in(5) ? 0 : between(1, longest));
    kv_lens.push_back(one_in(5) ? 0 : between(1, longest));
  }
  q_lens.back() = std::max<std::int64_t>(1, q_lens.back());  // a batch without any query is refused
  return with_lengths(p, q_lens, kv_lens);
}

float random_prefill_value(char tensor, std::int64_t sequence, std::int64_t token, std::int64_t element) {
  const auto key = static_cast<std::uint64_t>(tensor) << 56U;
  const std::uint64_t bits = mix_bits(key + static_cast<std::uint64_t>((sequence << 44) + (token << 20) + element));
  return static_cast<float>(static_cast<std::int64_t>(bits % 2048) - 1024) / 512;
}

EditTensors fill_prefill(const Problem& p, const PrefillValue& value, float unused) {
  return [=](std::vector<TensorSpec>& specs) {
    const std::vector<Token> keys = tokens_of_rows(p, specs);
    fill(tensor_named(specs, "q"), tokens_of_queries(p), p.q_heads * p.head_dim, value, unused);
    fill(tensor_named(specs, "k"), keys, p.kv_heads * p.head_dim, value, unused);
    fill(tensor_named(specs, "v"), keys, p.kv_heads * p.v_dim(), value, unused);
  };
}

PrefillValue numbered_values(float q, float k) {
  return [=](char tensor, std::int64_t, std::int64_t token, std::int64_t) {
    if (tensor == 'v') return static_cast<float>(token);
    return tensor == 'q' ? q : k;
  };
}

std::vector<float> answer_of(const VariantRun& run, const Problem& p, std::int64_t sequence) {
  std::int64_t before = 0;
  for (std::int64_t b = 0; b < sequence; ++b) before += p.q_len_of(b);
  const std::int64_t queries = p.q_len_of(sequence);
  const std::int64_t row = p.q_heads * p.v_dim();
  std::vector<float> answer;
  const auto append = [&](const std::vector<float>& from, std::int64_t begin, std::int64_t count) {
    answer.insert(answer.end(), from.begin() + begin, from.begin() + begin + count);
  };
  append(run.outputs.at("o"), before * row, queries * row);
  for (std::int64_t head = 0; head < p.q_heads; ++head)
    append(run.outputs.at("lse"), p.ragged() ? head * p.total_q() + before : (sequence * p.q_heads + head) * p.q_len,
           queries);
  return answer;
}

}  // namespace inferometer::test
