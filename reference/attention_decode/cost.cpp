#include "reference/attention_decode/cost.hpp"

#include <algorithm>
#include <cstdint>

#include "harness/judge/tolerance.hpp"
#include "reference/attention_decode/queries.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;

// Bytes that one key, or one value, of one KV head takes: codes and scales without padding, or elements.
double bytes_of_key(const Problem& p) {
  if (p.kv_bits == 16) return static_cast<double>(p.head_dim) * static_cast<double>(dtype_bytes(p.dtype));
  return static_cast<double>(p.head_dim * p.kv_bits) / 8 + 2 * static_cast<double>(p.groups());
}

}  // namespace

// Q K^T and P V take 2 head_dim FLOPs each per query head and visible pair. A query at position i sees the keys
// [max(0, i - window_left), i].
Work decode_work(const Problem& p) {
  double pairs = 0;
  double tokens = 0;  // seen by at least one query
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t length = p.context_of(b);
    const std::int64_t earliest = std::max<std::int64_t>(0, length - p.q_len);
    const auto first_key = [&](std::int64_t i) {
      return p.window_left < 0 ? 0 : std::max<std::int64_t>(0, i - p.window_left);
    };
    for (std::int64_t i = earliest; i < length; ++i) pairs += static_cast<double>(i - first_key(i) + 1);
    tokens += static_cast<double>(length - first_key(earliest));
  }
  const auto element = static_cast<double>(dtype_bytes(p.dtype));
  const auto rows = static_cast<double>(p.batch * p.q_len * p.q_heads);
  return {.flops = 4.0 * static_cast<double>(p.q_heads * p.head_dim) * pairs,
          .bytes = tokens * static_cast<double>(2 * p.kv_heads) * bytes_of_key(p) +
                   rows * (2.0 * static_cast<double>(p.head_dim) * element + sizeof(float)),
          .arithmetic = p.dtype == Dtype::f32 ? Arithmetic::f32 : Arithmetic::f16_matmul};
}

// S stays in f32: no decode kernel has a reason to store it.
//
// Codes are integers below 2^8 or FP8 numbers, exact in every dtype. Scaling is two more f32 roundings, of a score by
// K's scale and of P by V's, and P times scale is rounded to dtype where P alone was. A kernel that makes K and V of
// dtype instead rounds each element once: v_j as P is rounded; k_j for an error of u in a score of standard deviation
// 1, by which P errs likewise. Root mean squares being 0.42 of their bounds, those and the rounding of O are together
// 0.42 u sqrt(4): the 2 u of attention_output_tolerance holds both kernels.
//
// A soft cap c tanh(s / c) by tanh.approx.f32 errs by at most 2^-10.987 of the capped score (PTX ISA), just what
// storing S in f16 does: the log-sum-exp's tolerance is told so, and for standard normal scores O's holds such kernels
// in f16 and bf16 already.
//
// The newest key (queries.hpp) has a score s of its own, of an error in proportion: accumulation_error(head_dim) of it,
// and with a soft cap the 2^-11. An error e in s moves the key's weight w by w (1 - w) e, and O by at most (1 - w) e of
// its length, for O holds w of the key's value: e is added. The log-sum-exp moves by w e, and is itself above s: its
// tolerance, relative to its magnitude, holds that.
Tolerance decode_tolerance(const Problem& p, std::string_view tensor) {
  const std::int64_t keys = p.window_left < 0 ? p.context : std::min(p.context, p.window_left + 1);
  const bool has_half_cap = p.soft_cap > 0 && p.dtype != Dtype::f32;
  if (tensor == "lse") return log_sum_exp_tolerance(has_half_cap ? Dtype::f16 : Dtype::f32, p.head_dim, keys);
  Tolerance tolerance = attention_output_tolerance(p.dtype, p.head_dim, keys);
  const double score_error = accumulation_error(p.head_dim) + (has_half_cap ? unit_roundoff(Dtype::f16) : 0);
  const double score = p.soft_cap > 0 ? std::min(p.soft_cap, newest_score(p, keys)) : newest_score(p, keys);
  const double grown = 1 + score * score_error / tolerance.rel_l2;
  tolerance.rel_l2 *= grown;
  tolerance.max_error_over_rms *= grown;
  tolerance.row_rel_l2 *= grown;
  return tolerance;
}

}  // namespace inferometer
