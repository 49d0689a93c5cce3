#include "reference/serving/metrics.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "harness/measure/statistics.hpp"

namespace inferometer {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kNsPerS = 1e9;

double ratio(double part, double whole) { return whole == 0 ? kNotANumber : part / whole; }

template <class Value>
void add(std::vector<double>& samples, const std::optional<Value>& value) {
  if (value) samples.push_back(static_cast<double>(*value));
}

template <class Value>
bool within(const std::optional<double>& limit, const std::optional<Value>& value) {
  return !limit || !value || static_cast<double>(*value) <= *limit;
}

std::int64_t duration_ns(std::span<const RequestRecord> records) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const RequestRecord& record : records) {
    first = std::min(first, record.arrival_ns);
    if (!record.token_ns.empty()) last = std::max(last, record.token_ns.back());
  }
  return last < first ? 0 : last - first;
}

}  // namespace

std::optional<std::int64_t> ttft_ns(const RequestRecord& record) {
  if (record.token_ns.empty()) return std::nullopt;
  return record.token_ns.front() - record.arrival_ns;
}

std::optional<std::int64_t> end_to_end_ns(const RequestRecord& record) {
  if (record.token_ns.empty()) return std::nullopt;
  return record.token_ns.back() - record.arrival_ns;
}

std::optional<double> tpot_ns(const RequestRecord& record) {
  if (record.token_ns.size() < 2) return std::nullopt;
  return static_cast<double>(record.token_ns.back() - record.token_ns.front()) /
         static_cast<double>(record.token_ns.size() - 1);
}

std::vector<std::int64_t> itl_ns(const RequestRecord& record) {
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < record.token_ns.size(); ++i) gaps.push_back(record.token_ns[i] - record.token_ns[i - 1]);
  return gaps;
}

LatencySummary summarize(std::vector<double> samples_ns) {
  if (samples_ns.empty())
    return {.mean_ns = kNotANumber, .p50_ns = kNotANumber, .p90_ns = kNotANumber, .p99_ns = kNotANumber};
  std::ranges::sort(samples_ns);
  const double sum = std::accumulate(samples_ns.begin(), samples_ns.end(), 0.0);
  return {.samples = std::ssize(samples_ns),
          .mean_ns = sum / static_cast<double>(samples_ns.size()),
          .p50_ns = quantile(samples_ns, 0.5),
          .p90_ns = quantile(samples_ns, 0.9),
          .p99_ns = quantile(samples_ns, 0.99)};
}

bool keeps(const LatencyLimits& limits, const RequestRecord& record) {
  return record.outcome == RequestOutcome::completed && within(limits.ttft_ns, ttft_ns(record)) &&
         within(limits.tpot_ns, tpot_ns(record)) && within(limits.end_to_end_ns, end_to_end_ns(record));
}

ServingMetrics serving_metrics(std::span<const RequestRecord> records, std::int64_t refused,
                               const LatencyLimits& limits) {
  ServingMetrics metrics;
  metrics.duration_ns = duration_ns(records);
  std::vector<double> ttft;
  std::vector<double> tpot;
  std::vector<double> itl;
  std::vector<double> end_to_end;
  std::int64_t good = 0;
  for (const RequestRecord& record : records) {
    if (record.outcome == RequestOutcome::aborted) {
      ++metrics.aborted;
      continue;
    }
    ++metrics.completed;
    metrics.prompt_tokens += record.prompt_tokens;
    metrics.output_tokens += std::ssize(record.outputs);
    if (keeps(limits, record)) ++good;
    add(ttft, ttft_ns(record));
    add(tpot, tpot_ns(record));
    add(end_to_end, end_to_end_ns(record));
    for (const std::int64_t gap : itl_ns(record)) itl.push_back(static_cast<double>(gap));
  }
  const double seconds = static_cast<double>(metrics.duration_ns) / kNsPerS;
  const auto per_s = [&](std::int64_t count) { return ratio(static_cast<double>(count), seconds); };
  metrics.output_tokens_per_s = per_s(metrics.output_tokens);
  metrics.total_tokens_per_s = per_s(metrics.prompt_tokens + metrics.output_tokens);
  metrics.requests_per_s = per_s(metrics.completed);
  metrics.goodput_per_s = per_s(good);
  metrics.goodput_ratio = ratio(static_cast<double>(good), static_cast<double>(std::ssize(records) + refused));
  metrics.ttft = summarize(std::move(ttft));
  metrics.tpot = summarize(std::move(tpot));
  metrics.itl = summarize(std::move(itl));
  metrics.end_to_end = summarize(std::move(end_to_end));
  return metrics;
}

}  // namespace inferometer
