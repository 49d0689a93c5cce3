#include "reference/generation/token_times.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/measure/statistics.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kLeastFitted = 8;
constexpr std::int64_t kScaleBytes = 2;  // f16, one for each token and head

}  // namespace

std::vector<double> token_times(const GenerationProblem& p, std::span<const std::int32_t> result) {
  std::vector<double> times;
  for (std::int64_t i = 0; i < p.new_tokens; ++i) {
    const auto at = static_cast<std::size_t>(p.times_at() + 2 * i);
    times.push_back(static_cast<double>(result[at] * kTimeLimb + result[at + 1]));
  }
  return times;
}

void store_time(std::int64_t ns, std::int32_t* limbs) {
  limbs[0] = static_cast<std::int32_t>(ns / kTimeLimb);
  limbs[1] = static_cast<std::int32_t>(ns % kTimeLimb);
}

double fitted_exponent(std::span<const double> times) {
  if (times.size() < kLeastFitted) return 0;
  double total = 0;
  double weights = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    total += times[i];
    const auto n = static_cast<double>(i + 1);
    if (n < static_cast<double>(times.size()) / 8) continue;
    const double weight = 1 / n;  // points are as dense as n in log n
    weights += weight;
    x += weight * std::log(n);
    y += weight * std::log(total);
    xx += weight * std::log(n) * std::log(n);
    xy += weight * std::log(n) * std::log(total);
  }
  return (weights * xy - x * y) / (weights * xx - x * x);
}

std::int64_t kv_bytes(const GenerationProblem& p, std::int64_t length) {
  const DecoderShape& s = decoder_shape(p.model);
  const std::int64_t row_bytes =
      p.kv_bits == 16 ? 2 * s.head_dim : (s.head_dim * p.kv_bits / 8 + 15) / 16 * 16 + kScaleBytes;
  return p.batch * length * 2 * s.layers * s.kv_heads * row_bytes;
}

std::vector<Metric> generation_metrics(const GenerationProblem& p, std::span<const std::int32_t> result) {
  const std::vector<double> times = token_times(p, result);
  const double total = std::reduce(times.begin(), times.end());
  std::vector<Metric> metrics;
  if (total > 0) metrics.push_back({"tokens_per_s", static_cast<double>(p.batch * p.new_tokens) * 1e9 / total});
  metrics.push_back({"first_token_ns", times.front()});
  if (times.size() > kLeastFitted) {
    const std::span<const double> decoded = std::span(times).subspan(1);
    const std::size_t eighth = std::max<std::size_t>(decoded.size() / 8, 1);
    metrics.push_back({"token_at_first_ns", median(sorted_copy(decoded.first(eighth)))});
    metrics.push_back({"token_at_last_ns", median(sorted_copy(decoded.last(eighth)))});
    metrics.push_back({"decode_tokens_per_s", static_cast<double>(p.batch) * static_cast<double>(decoded.size()) * 1e9 /
                                                  std::reduce(decoded.begin(), decoded.end())});
    metrics.push_back({"exponent", fitted_exponent(times)});
  }
  metrics.push_back({"kv_cache_bytes", static_cast<double>(kv_bytes(p, p.length() - 1))});
  return metrics;
}

std::vector<MetricInfo> generation_metric_docs() {
  return {{"tokens_per_s", "new tokens of all sequences over the whole time, the prompts' included"},
          {"exponent", "e of T(n) ~ n^e, T being the time of the first n tokens: 1 with a cache, towards 2 without"},
          {"token_at_first_ns", "time of a token of every sequence, median of the first eighth behind the first token"},
          {"token_at_last_ns", "the same of the last eighth"},
          {"decode_tokens_per_s", "new tokens of all sequences behind the first ones over their time"},
          {"first_token_ns", "time of the prompts and the first token of every sequence"},
          {"kv_cache_bytes", "keys and values of all tokens but each sequence's last, which nobody reads"}};
}

}  // namespace inferometer
