#include "reference/attention_prefill/cost.hpp"

#include <algorithm>
#include <cstdint>

#include "harness/judge/tolerance.hpp"

namespace inferometer {
namespace {

using Problem = AttentionPrefillProblem;

// What the queries of one sequence see.
struct Seen {
  double pairs = 0;  // of a query and a key
  double keys = 0;   // by at least one query
};

// Causal: the last n = min(q_len, kv_len) queries see min(w, kv_len - n + 1), ..., min(w, kv_len) keys, with w their
// window, and the others none. The first m of them see less than a window, whole sums of consecutive integers.
Seen seen_in(const Problem& p, std::int64_t q_len, std::int64_t kv_len) {
  const auto keys = static_cast<double>(kv_len);
  if (q_len == 0 || kv_len == 0) return {};
  if (!p.causal) return {.pairs = static_cast<double>(q_len) * keys, .keys = keys};
  const std::int64_t n = std::min(q_len, kv_len);
  const std::int64_t before = kv_len - n;
  const std::int64_t window = p.window_left < 0 ? kv_len : std::min(p.window_left + 1, kv_len);
  const auto m = static_cast<double>(std::clamp<std::int64_t>(window - before, 0, n));
  return {.pairs = m * static_cast<double>(before) + m * (m + 1) / 2 +
                   (static_cast<double>(n) - m) * static_cast<double>(window),
          .keys = static_cast<double>(kv_len - std::max<std::int64_t>(0, before + 1 - window))};
}

}  // namespace

// Q K^T takes 2 head_dim FLOPs per query head and visible pair, P V takes 2 v_head_dim.
Work prefill_work(const Problem& p) {
  Seen all;
  if (p.ragged()) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const Seen one = seen_in(p, p.q_len_of(b), p.kv_len_of(b));
      all.pairs += one.pairs;
      all.keys += one.keys;
    }
  } else {
    const auto batch = static_cast<double>(p.batch);
    const Seen one = seen_in(p, p.q_len, p.kv_len);
    all = {.pairs = batch * one.pairs, .keys = batch * one.keys};
  }
  const auto dims = static_cast<double>(p.head_dim + p.v_dim());
  const auto element = static_cast<double>(dtype_bytes(p.dtype));
  const auto rows = static_cast<double>(p.total_q() * p.q_heads);
  return {
      .flops = 2.0 * static_cast<double>(p.q_heads) * dims * all.pairs,
      .bytes = all.keys * static_cast<double>(p.kv_heads) * dims * element + rows * (dims * element + sizeof(float)),
      .arithmetic = p.dtype == Dtype::f32 ? Arithmetic::f32 : Arithmetic::f16_matmul};
}

// S may be held in the inputs' type, as materialised attention in that type holds it. That covers a soft cap by
// tanh.approx.f32, which errs by at most 2^-10.987 of the capped score (PTX ISA): as much as storing S in f16.
Tolerance prefill_tolerance(const Problem& p, std::string_view tensor) {
  const std::int64_t keys = p.window_left < 0 ? p.kv_len : std::min(p.kv_len, p.window_left + 1);
  const std::int64_t terms = std::max<std::int64_t>(1, keys);
  return tensor == "lse" ? log_sum_exp_tolerance(p.dtype, p.head_dim, terms)
                         : attention_output_tolerance(p.dtype, p.head_dim, terms, p.v_dim());
}

}  // namespace inferometer
