// What makes a run invalid, by runs made for it.
#include "reference/serving/run_metrics.hpp"
#include "tests/reference/kv_memory/kv_memory_runs.hpp"
#include "tests/reference/serving/serving_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

TEST_CASE("serving stamps: a run is over-saturated when more than a batch waits as the last request comes",
          "[serving][stamps]") {
  const auto saturated = [](double rate) {
    const Fields fields{{"arrivals", std::string("poisson")}, {"rate", Value(rate)}};
    return over_saturated(serving_problem(fields), run_serving("cpu.simulated_continuous", fields));
  };
  CHECK_FALSE(saturated(1));
  CHECK(saturated(1e6));
  CHECK_FALSE(over_saturated(serving_problem(), run_serving("cpu.simulated_continuous")));  // all at the start
}

TEST_CASE("serving stamps: a prompt that finds what nobody in the run computed had a warm cache", "[serving][stamps]") {
  const TemporaryTrace trace(R"({"timestamp": 0, "input_length": 600, "output_length": 2, "hash_ids": [1, 2]}
{"timestamp": 9000, "input_length": 600, "output_length": 2, "hash_ids": [1, 3]}
)",
                             ".jsonl");
  const Fields fields{{"trace", trace.path()},       {"requests", integer(2)},      {"max_prompt", integer(1000)},
                      {"max_length", integer(1000)}, {"prefix_reuse", Value(true)}, {"arrivals", std::string("trace")},
                      {"rate", Value(1000.0)}};
  const ServingProblem problem = serving_problem(fields);
  ServingRun run = run_serving("cpu.simulated_continuous", fields);
  CHECK(run.requests[0]->reused_tokens == 0);
  CHECK(run.requests[1]->reused_tokens == 512);
  CHECK_FALSE(warm_prefix_cache(problem, run));
  run.requests[0]->reused_tokens = 16;
  CHECK(warm_prefix_cache(problem, run));
}

TEST_CASE("serving stamps: clocks that differ by more than a hundredth have drifted", "[serving][stamps]") {
  ServingRun run;
  run.times = {.end_ns = 1500, .idle_ns = 500, .second_ns = 1010};
  CHECK_FALSE(clock_drift(run));
  run.times.second_ns = 1011;
  CHECK(clock_drift(run));
  run.times.second_ns = 989;
  CHECK(clock_drift(run));
}

TEST_CASE("serving stamps: no schedule needs fewer steps than outputs over slots, or than the longest answer",
          "[serving][stamps]") {
  ServingProblem problem;
  problem.slots = 4;
  ServingRun run;
  for (const std::int64_t outputs : {3, 3, 3}) run.requests.emplace_back(RequestRecord{.max_new = outputs});
  CHECK(least_steps(problem, run) == 3);
  run.requests.emplace_back();  // refused
  for (int i = 0; i < 5; ++i) run.requests.emplace_back(RequestRecord{.max_new = 3});
  CHECK(least_steps(problem, run) == 6);
}
