// The figures of a serving run, by the field's definitions. Times of a request count from its planned arrival, so that
// an engine that falls behind cannot hide the wait.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/serving/record.hpp"

namespace inferometer {

// Of one request. Nothing where it has too few outputs: none, or for TPOT one.
std::optional<std::int64_t> ttft_ns(const RequestRecord& record);        // time to first token
std::optional<std::int64_t> end_to_end_ns(const RequestRecord& record);  // time to last token
// Time per output token: (end to end - TTFT) / (outputs - 1).
std::optional<double> tpot_ns(const RequestRecord& record);
// Inter-token latencies: the times between outputs, one less than these.
std::vector<std::int64_t> itl_ns(const RequestRecord& record);

// Of several samples; percentiles are linear between order statistics. All not a number without samples.
struct LatencySummary {
  std::int64_t samples = 0;
  double mean_ns = 0;
  double p50_ns = 0;
  double p90_ns = 0;
  double p99_ns = 0;
};
LatencySummary summarize(std::vector<double> samples_ns);

// What a request must keep to count as good; without a value, anything will do.
struct LatencyLimits {
  std::optional<double> ttft_ns = {};
  std::optional<double> tpot_ns = {};
  std::optional<double> end_to_end_ns = {};
};
// Whether it completed within the limits; a limit on what the request does not have is kept.
bool keeps(const LatencyLimits& limits, const RequestRecord& record);

struct ServingMetrics {
  std::int64_t completed = 0;
  std::int64_t aborted = 0;
  std::int64_t prompt_tokens = 0;  // of completed requests
  std::int64_t output_tokens = 0;  // of completed requests
  // From the first planned arrival to the last output of anyone; 0 without outputs. Rates are not a number then.
  std::int64_t duration_ns = 0;
  double output_tokens_per_s = 0;
  double total_tokens_per_s = 0;  // prompts included
  double requests_per_s = 0;
  double goodput_per_s = 0;  // requests that keep the limits (Zhong et al., "DistServe", OSDI 2024)
  double goodput_ratio = 0;  // of all requests, refused and aborted ones included
  // Of completed requests. TTFT, TPOT and end to end have one sample a request, ITL one a pair of outputs.
  LatencySummary ttft;
  LatencySummary tpot;
  LatencySummary itl;
  LatencySummary end_to_end;
};

// `refused`: requests that were turned away and have no record.
ServingMetrics serving_metrics(std::span<const RequestRecord> records, std::int64_t refused = 0,
                               const LatencyLimits& limits = {});

}  // namespace inferometer
