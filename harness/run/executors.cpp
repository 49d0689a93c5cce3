#include "harness/run/executors.hpp"

#include <utility>

#include "harness/run/abba_executor.hpp"

namespace inferometer {
namespace {

// Counterparts may need another device than the rows that they are measured beside.
SessionConfig config_of(const ExecutorPlan& plan, int device) {
  SessionConfig config = session_config(plan.sweep, plan.options.seed, device);
  Sweep beside;
  for (const auto& [id, row] : plan.counterparts) beside.rows.push_back(row);
  const SessionConfig needed = session_config(beside, plan.options.seed, device);
  config.cpu_rows = config.cpu_rows || needed.cpu_rows;
  config.gpu_rows = config.gpu_rows || needed.gpu_rows;
  return config;
}

}  // namespace

std::vector<std::unique_ptr<RowExecutor>> make_executors(const ExecutorPlan& plan, const InterruptGuard& interrupt,
                                                         RunObserver& observer, RecordsById& counterpart_records) {
  std::vector<std::unique_ptr<RowExecutor>> executors;
  for (const int device : plan.devices) {
    SessionConfig config = config_of(plan, device);
    if (executors.empty()) {
      config.known = plan.known;
    } else {
      config.cpu_rows = false;  // DeviceTeam::run_alone: the first device's worker runs these
    }
    std::unique_ptr<RowExecutor> executor;
    if (plan.options.in_process) {
      executor = std::make_unique<InProcessExecutor>(config, interrupt, observer);
    } else {
      executor = std::make_unique<WorkerExecutor>(config, interrupt, observer);
    }
    if (!plan.counterparts.empty())
      executor = std::make_unique<AbbaExecutor>(std::move(executor), plan.counterparts, counterpart_records);
    executors.push_back(std::move(executor));
  }
  return executors;
}

}  // namespace inferometer
