// The figures of a serving run, from the times of its tokens and what became of its slots.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/serving/problem.hpp"

namespace inferometer {

std::vector<Metric> run_metrics(const ServingProblem& problem, const ServingRun& run);
std::vector<MetricInfo> run_metric_docs();

// No engine that computes a token for each of at most `slots` requests in a step needs fewer steps: outputs over
// slots, or the longest answer.
std::int64_t least_steps(const ServingProblem& problem, const ServingRun& run);

// A run whose latencies say nothing of the engine: when the last request came, more of those before it still waited for
// their first token than run at once, so that the queue, and with it every latency, grows with the trace. Not asked
// where all come at the start.
bool over_saturated(const ServingProblem& problem, const ServingRun& run);

// A prompt found more tokens in the cache than prompts of this run can have left there.
bool warm_prefix_cache(const ServingProblem& problem, const ServingRun& run);

// The two clocks of the run differ by more than 1 %.
bool clock_drift(const ServingRun& run);

}  // namespace inferometer
