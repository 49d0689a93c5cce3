// An operator's metrics by name: what tables show and `list` explains is what a row reports.
#pragma once

#include <string>
#include <vector>

#include "harness/operator/fields.hpp"

namespace inferometer::test {

// Runs a variant on a problem whose row reports all metrics that its operator has, but for those of `on_gpu_only`.
// Checks that these are the ones that `metric_docs` describes.
void check_metric_docs(const std::string& operator_name, const std::string& variant, const Fields& problem,
                       const std::vector<std::string>& on_gpu_only = {});

}  // namespace inferometer::test
