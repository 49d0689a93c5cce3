// What Nsight Compute counted in the measured phase of a row, as metrics of the row in its results file.
#pragma once

#include <string>
#include <vector>

#include "harness/operator/operator.hpp"
#include "harness/results/json.hpp"
#include "harness/run/ncu_log.hpp"

namespace inferometer {

// Of one launch of the row, on average over `launches`: ncu_kernels, ncu_time_ns, ncu_dram_bytes, which are summed over
// its kernels, and ncu_tensor_pipe_ratio, ncu_occupancy_ratio, which are weighted by their times. Throws
// std::runtime_error where the kernels do not come to whole launches.
std::vector<Metric> counter_metrics(const std::vector<KernelCounters>& kernels, int launches);

// The row `id` of `results`, read from `path`, where it may get counters of this program's kernels. Throws ConfigError:
// no results file, no such row, a row without a time, a file of another version of the kernels.
Json& row_for_counters(Json& results, const std::string& id, const std::string& path);

// Throws std::runtime_error where the kernels ran on another architecture than the GPU of `results`.
void require_same_sm(const Json& results, const std::vector<KernelCounters>& kernels);

// In place of those of an earlier time.
void set_metrics(Json& row, const std::vector<Metric>& metrics);

}  // namespace inferometer
