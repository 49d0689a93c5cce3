#include "kernels/serving/replay.hpp"

#include <algorithm>
#include <iterator>

#include "harness/operator/fields.hpp"

namespace inferometer {
namespace {

void check_arrivals(std::span<const ServingRequest> requests) {
  std::int64_t last = 0;
  for (const ServingRequest& request : requests) {
    if (request.arrival_ns < last)
      throw ProblemError("arrival_ns", "arrival_ns must not be before that of the request in front of it (" +
                                           std::to_string(last) + "), got " + std::to_string(request.arrival_ns) +
                                           " for request " + std::to_string(request.id));
    last = request.arrival_ns;
  }
}

}  // namespace

Replay replay(const ServingConfig& config, ServingModel& model, std::span<const ServingRequest> requests,
              const std::function<void(const StepBatch&)>& observe) {
  check_arrivals(requests);
  ServingEngine engine(config);
  Replay result;
  std::vector<TokenId> next;
  std::int64_t now_ns = 0;
  std::size_t submitted = 0;
  while (submitted < requests.size() || engine.busy()) {
    if (!engine.busy() && requests[submitted].arrival_ns > now_ns) {
      result.idle_ns += requests[submitted].arrival_ns - now_ns;
      now_ns = requests[submitted].arrival_ns;
    }
    for (; submitted < requests.size() && requests[submitted].arrival_ns <= now_ns; ++submitted) {
      try {
        engine.submit(requests[submitted]);
      } catch (const BlockPoolError& refusal) {
        result.refused.push_back({.id = requests[submitted].id, .reason = refusal.what()});
      }
    }
    if (!engine.busy()) continue;
    const StepBatch& batch = engine.begin_step();
    if (observe) observe(batch);
    next.assign(batch.rows.size(), 0);
    const StepTime time = model.step(batch, next);
    now_ns += time.ns;
    result.busy_ns += time.busy_ns;
    result.host_ns += time.host_ns;
    engine.end_step(next, now_ns);
    std::ranges::move(engine.take_ended(), std::back_inserter(result.records));
  }
  std::ranges::move(engine.take_ended(), std::back_inserter(result.records));
  result.ledger = engine.ledger();
  result.end_ns = now_ns;
  return result;
}

}  // namespace inferometer
