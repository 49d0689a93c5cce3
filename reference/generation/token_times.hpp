// What the times of a generation's tokens say.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/generation/problem.hpp"

namespace inferometer {

// Nanoseconds of each token, from the result.
std::vector<double> token_times(const GenerationProblem& p, std::span<const std::int32_t> result);
void store_time(std::int64_t ns, std::int32_t* limbs);

// The exponent e of T(n) ~ n^e, where T(n) is the time of the first n tokens: the slope of log T over log n by least
// squares, weighted evenly in log n, over the last three octaves, so that the prompt counts little. 0 for less than
// eight tokens.
double fitted_exponent(std::span<const double> times);

std::vector<Metric> generation_metrics(const GenerationProblem& p, std::span<const std::int32_t> result);
std::vector<MetricInfo> generation_metric_docs();

// Of the cache that `length` tokens of every sequence fill.
std::int64_t kv_bytes(const GenerationProblem& p, std::int64_t length);

}  // namespace inferometer
