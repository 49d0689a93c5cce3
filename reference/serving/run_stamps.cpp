// The ceilings of a run's steps, and what makes a run invalid.
#include <algorithm>
#include <cmath>
#include <set>

#include "reference/serving/run_metrics.hpp"

namespace inferometer {

std::int64_t least_steps(const ServingProblem& p, const ServingRun& run) {
  std::int64_t outputs = 0;
  std::int64_t longest = 0;
  for (const auto& request : run.requests) {
    if (!request) continue;
    outputs += request->max_new;
    longest = std::max(longest, request->max_new);
  }
  return std::max((outputs + p.slots - 1) / p.slots, longest);
}

bool over_saturated(const ServingProblem& p, const ServingRun& run) {
  if (p.arrivals == "all_at_start") return false;
  std::int64_t last_arrival = 0;
  for (const auto& request : run.requests)
    if (request) last_arrival = std::max(last_arrival, request->arrival_ns);
  std::int64_t waiting = 0;
  for (const auto& request : run.requests)
    if (request && request->arrival_ns < last_arrival && !request->token_ns.empty() &&
        request->token_ns.front() > last_arrival)
      ++waiting;
  return waiting > p.slots;
}

bool warm_prefix_cache(const ServingProblem& p, const ServingRun& run) {
  std::set<std::int64_t> seen;  // ids of prompt blocks of the requests before
  for (const KvRequest& request : served_requests(p)) {
    std::int64_t known = 0;
    for (const std::int64_t id : request.hash_ids) {
      if (!seen.contains(id)) break;
      known += kHashBlockTokens;
    }
    seen.insert(request.hash_ids.begin(), request.hash_ids.end());
    const auto& record = run.requests[static_cast<std::size_t>(request.id)];
    if (record && record->reused_tokens > std::min(known, request.prompt)) return true;
  }
  return false;
}

bool clock_drift(const ServingRun& run) {
  constexpr double kMostDrift = 0.01;
  const auto first = static_cast<double>(run.times.end_ns - run.times.idle_ns);
  return std::fabs(static_cast<double>(run.times.second_ns) - first) > kMostDrift * first;
}

}  // namespace inferometer
