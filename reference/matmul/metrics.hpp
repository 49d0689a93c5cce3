// What storing weights in few bits saves and costs.
#pragma once

#include <span>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {

std::vector<Metric> matmul_metrics(const MatmulProblem& p, const Inputs& inputs, std::span<const void* const> tensors,
                                   int threads);

std::vector<MetricInfo> matmul_metric_docs();

}  // namespace inferometer
