// What must hold of a method's result, whatever the method, and what it means.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/weight_quantization/problem.hpp"

namespace inferometer {

// A sentence where something does not hold, else empty:
//   - codes, zeros, scales, groups and input scales are on the grid of the problem's format; groups have their size
//   - the objective that a method states is |X D^T|^2 / tokens, computed from the activations themselves
//   - rtn: each code is that of the nearest grid point; rtn_search: no group errs more than there
//   - awq: no greater objective than rtn
//   - gptq up to k = 512: the codes of Optimal Brain Quantization (obq_recount.hpp)
//   - inputs without correlation, groups of neighbours, whole ranges: GPTQ's codes and grids are rounding's
std::string audit_result(const WeightQuantizationProblem& problem, std::string_view variant,
                         std::span<const std::int32_t> elements);

std::vector<Metric> result_metrics(const WeightQuantizationProblem& problem, std::span<const std::int32_t> elements,
                                   int threads);

std::vector<MetricInfo> result_metric_docs();

}  // namespace inferometer
