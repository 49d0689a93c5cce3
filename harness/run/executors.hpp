// Who runs the rows of a run: an executor for each device, in a worker or in this process.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/results/results_file.hpp"
#include "harness/run/row_executor.hpp"
#include "harness/run/run.hpp"

namespace inferometer {

struct ExecutorPlan {
  const Sweep& sweep;
  const RunOptions& options;
  const std::vector<int>& devices;                      // GPU ordinals, at least one
  const std::map<std::string, SweepRow>& counterparts;  // rows to measure beside others (abba_executor.hpp)
  std::optional<DeviceReport> known = std::nullopt;     // what an earlier run measured of the first device
};

// `counterpart_records` gets what the counterparts took.
std::vector<std::unique_ptr<RowExecutor>> make_executors(const ExecutorPlan& plan, const InterruptGuard& interrupt,
                                                         RunObserver& observer, RecordsById& counterpart_records);

}  // namespace inferometer
