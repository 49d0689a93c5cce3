#include "kernels/serving/serve.hpp"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/serving/cost_model.hpp"
#include "kernels/serving/replay.hpp"
#include "kernels/serving/trace_requests.hpp"

namespace inferometer {
namespace {

std::vector<ServingRequest> requests_of(const ServingProblem& problem) {
  const auto vocabulary = static_cast<TokenId>(decoder_shape(problem.model).vocabulary);
  std::vector<ServingRequest> requests;
  for (const KvRequest& request : served_requests(problem)) requests.push_back(serving_request(request, 1, vocabulary));
  return requests;
}

// Sums of what each step computes and is said to cost.
class StepSums {
 public:
  explicit StepSums(const ServingProblem& problem)
      : roofline_(step_cost(problem, ceiling_rates(problem))),
        predicted_(step_cost(problem, achieved_rates(problem))) {}

  void add(const StepBatch& batch) {
    const StepLoad load = load_of(batch);
    work_.sampled += load.sampled;
    work_.keys += load.keys;
    work_.pairs += load.pairs;
    roofline_ns_ += step_time_ns(roofline_, batch);
    predicted_ns_ += step_time_ns(predicted_, batch);
  }

  void write(ServingRun& run) const {
    run.work = work_;
    run.times.roofline_ns = std::llround(roofline_ns_);
    run.times.predicted_ns = std::llround(predicted_ns_);
  }

 private:
  StepCost roofline_;
  StepCost predicted_;
  ServingWork work_;
  double roofline_ns_ = 0;
  double predicted_ns_ = 0;
};

}  // namespace

ServingConfig serving_config(const ServingProblem& problem, ServingPolicy policy) {
  return {.policy = policy,
          .slots = problem.slots,
          .num_blocks = static_cast<std::int32_t>(problem.pool_blocks()),
          .block_size = static_cast<std::int32_t>(problem.pool_block_tokens()),
          .max_length = problem.max_length,
          .prefix_reuse = problem.prefix_reuse,
          .token_budget = policy == ServingPolicy::chunked ? problem.token_budget : 0};
}

std::optional<std::string> budget_too_small(const ServingProblem& problem) {
  if (problem.token_budget >= problem.slots) return std::nullopt;
  return "token_budget must be at least the " + std::to_string(problem.slots) + " slots, got " +
         std::to_string(problem.token_budget);
}

std::optional<std::string> attention_impossible(const ServingProblem& problem) {
  if (problem.attention == "flash") return std::nullopt;
  if (problem.block_size != 0)
    return "attention must be flash over blocks of " + std::to_string(problem.block_size) +
           " tokens: materialized reads a prompt's keys from one piece of memory, that of block_size 0";
  if (problem.kv_bits != 16)
    return "attention must be flash with kv_bits " + std::to_string(problem.kv_bits) +
           ": materialized reads keys and values of 16 bits";
  return std::nullopt;
}

void serve(const ServingProblem& problem, ServingPolicy policy, ServingModel& model, ServingClock clock,
           std::int32_t* elements) {
  const std::vector<ServingRequest> requests = requests_of(problem);
  StepSums sums(problem);
  using Clock = std::chrono::system_clock;  // not the one that models measure with
  const auto begin = Clock::now();
  Replay replayed =
      replay(serving_config(problem, policy), model, requests, [&](const StepBatch& batch) { sums.add(batch); });
  const std::chrono::nanoseconds elapsed = Clock::now() - begin;
  const std::int64_t steps_ns = replayed.end_ns - replayed.idle_ns;
  ServingRun run{.clock = clock,
                 .ledger = replayed.ledger,
                 .work = {},
                 .times = {.end_ns = replayed.end_ns,
                           .busy_ns = replayed.busy_ns,
                           .idle_ns = replayed.idle_ns,
                           .host_ns = replayed.host_ns,
                           .second_ns = clock == ServingClock::simulated ? steps_ns : elapsed.count()},
                 .requests = {}};
  sums.write(run);
  run.requests.resize(requests.size());
  for (RequestRecord& record : replayed.records) {
    const auto place = static_cast<std::size_t>(record.id);
    run.requests[place] = std::move(record);
  }
  write_run(problem, run, elements);
}

}  // namespace inferometer
