// The operator around the engine: fields it refuses, tokens that do not depend on the policy, shares that sum to 1.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "reference/serving/run_metrics.hpp"
#include "tests/reference/kv_memory/kv_memory_runs.hpp"
#include "tests/reference/serving/serving_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

std::map<std::string, double> metrics_of(const ServingProblem& problem, const ServingRun& run) {
  std::map<std::string, double> metrics;
  for (const Metric& metric : run_metrics(problem, run)) metrics[metric.name] = metric.value;
  return metrics;
}

std::vector<std::vector<std::int32_t>> outputs_of(const ServingRun& run) {
  std::vector<std::vector<std::int32_t>> outputs;
  for (const auto& request : run.requests) outputs.push_back(request ? request->outputs : std::vector<std::int32_t>{});
  return outputs;
}

std::string refused(const Fields& more) {
  try {
    serving_problem(more);
  } catch (const ProblemError& error) {
    return error.field() + ": " + error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("serving: impossible problems are refused by field, with what is allowed", "[serving][operator]") {
  CHECK(refused({}) == "accepted");
  CHECK(refused({{"model", std::string("lama3_8b")}}).find("nearest is 'llama3_8b'") != std::string::npos);
  CHECK(refused({{"weight_bits", integer(5)}}) == "weight_bits: weight_bits must be 16, 8 or 4, got 5");
  CHECK(refused({{"kv_bits", integer(3)}}) == "kv_bits: kv_bits must be 16, 8 or 4, got 3");
  CHECK(refused({{"pool_bytes", integer(1000)}}).find("bytes of 16 tokens, which are a block, got 1000") !=
        std::string::npos);
  CHECK(refused({{"pool_bytes", pool_of(100)}, {"block_size", integer(0)}})
            .find("bytes of 128 tokens, which are a slot") != std::string::npos);
  CHECK(refused({{"max_length", integer(4096)}}) ==
        "max_length: max_length must be at most the 2048 tokens of tiny, got 4096");
  CHECK(refused({{"arrivals", std::string("trace")}}).find("arrivals: ") == 0);
  CHECK(refused({{"rate", Value(0.0)}}).find("rate: ") == 0);
  CHECK(refused({{"trace", std::string("nowhere.csv")}}).find("trace: nowhere.csv: cannot be opened") == 0);
  const TemporaryTrace two(csv_of({{2, 3}, {2, 3}}));
  CHECK(refused({{"trace", two.path()}, {"requests", integer(3)}}).find("requests must be at most the 2 of") !=
        std::string::npos);
}

TEST_CASE("serving: all policies give the same tokens, paged, contiguous and preempted", "[serving][operator]") {
  const auto expected = outputs_of(run_serving("cpu.simulated_static"));
  REQUIRE(expected.size() == 40);
  for (const char* policy : kServingPolicies)
    for (const auto& [block_size, tokens] :
         {std::pair{16, 4096}, std::pair{16, 160}, std::pair{1, 128}, std::pair{0, 512}}) {
      CAPTURE(policy, block_size, tokens);
      const ServingRun run = run_serving(std::string("cpu.simulated_") + policy,
                                         {{"block_size", integer(block_size)}, {"pool_bytes", pool_of(tokens)}});
      CHECK(outputs_of(run) == expected);
      const bool preempts =
          run.ledger.kv_taken_peak > 0 && (policy == kServingPolicies[2] || policy == kServingPolicies[3]);
      if (preempts && tokens < 200 && block_size > 0) CHECK(run.ledger.preemptions > 0);
    }
}

TEST_CASE("serving: requests that can never fit are refused, and the others served", "[serving][operator]") {
  const TemporaryTrace trace(csv_of({{10, 5}, {60, 30}, {0, 3}, {10, 0}, {7, 2}}));
  for (const char* policy : kServingPolicies) {
    CAPTURE(policy);
    const Fields fields{{"trace", trace.path()}, {"requests", integer(5)}, {"pool_bytes", pool_of(64)}};
    const ServingRun run = run_serving(std::string("cpu.simulated_") + policy, fields);
    CHECK(run.requests[0]);
    CHECK_FALSE(run.requests[1]);  // 89 tokens
    CHECK_FALSE(run.requests[2]);  // no prompt
    REQUIRE(run.requests[3]);
    CHECK(run.requests[3]->outputs.empty());
    CHECK(run.requests[4]->outputs.size() == 2);
    const auto metrics = metrics_of(serving_problem(fields), run);
    CHECK(metrics.at("refusals") == 2);
    CHECK(metrics.at("completed") == 3);
  }
}

TEST_CASE("serving: shares of slots and of time sum to 1", "[serving][operator]") {
  for (const char* policy : kServingPolicies) {
    CAPTURE(policy);
    const Fields fields{{"arrivals", std::string("poisson")}, {"rate", Value(300.0)}, {"pool_bytes", pool_of(200)}};
    const auto metrics =
        metrics_of(serving_problem(fields), run_serving(std::string("cpu.simulated_") + policy, fields));
    double slots = metrics.at("slot_occupancy_ratio");
    for (const char* state : {"prefilling", "discarded", "stalled", "ended", "blocked", "idle"})
      slots += metrics.at("slots_" + std::string(state) + "_ratio");
    CHECK(std::abs(slots - 1) <= 7 * 0x1p-53);  // seven roundings; the counts sum exactly
    const double time = metrics.at("gpu_busy_ratio") + metrics.at("idle_ratio") + metrics.at("host_gap_ratio") +
                        metrics.at("launch_gap_ratio");
    CHECK(std::abs(time - 1) <= 4 * 0x1p-53);
    CHECK(metrics.at("simulated") == 1);
    CHECK(metrics.at("steps") >= metrics.at("steps_least"));
    CHECK(metrics.at("step_mean_ns") >= metrics.at("step_roofline_ns"));
    CHECK(metrics.at("ttft_p50_ns") <= metrics.at("ttft_p90_ns"));
    CHECK(metrics.at("end_to_end_p99_ns") >= metrics.at("ttft_p99_ns"));
  }
}

TEST_CASE("serving: every metric has a definition", "[serving][operator]") {
  std::map<std::string, std::string> docs;
  for (const MetricInfo& info : run_metric_docs()) docs[info.name] = info.doc;
  ServingRun run = run_serving("cpu.simulated_continuous");
  for (const ServingClock clock : {ServingClock::simulated, ServingClock::host, ServingClock::device}) {
    run.clock = clock;
    for (const auto& [name, value] : metrics_of(serving_problem(), run)) {
      CAPTURE(name);
      CHECK(docs.contains(name));
      CHECK(std::isfinite(value));
    }
  }
}

TEST_CASE("serving: a batch of four static slots and one that is joined at every step", "[serving][operator]") {
  const TemporaryTrace trace(csv_of({{1, 2}, {1, 2}, {1, 2}, {1, 10}, {1, 2}, {1, 2}, {1, 2}, {1, 10}}));
  const Fields fields{{"trace", trace.path()}, {"requests", integer(8)}};
  const auto metrics = [&](const char* variant) {
    return metrics_of(serving_problem(fields), run_serving(variant, fields));
  };
  const auto fixed = metrics("cpu.simulated_static");
  CHECK(fixed.at("steps") == 20);
  CHECK(fixed.at("slot_occupancy_ratio") == 0.4);
  for (const char* policy : {"iteration", "continuous", "chunked"}) {
    const auto joined = metrics((std::string("cpu.simulated_") + policy).c_str());
    CHECK(joined.at("steps") == 14);
    CHECK(joined.at("slot_occupancy_ratio") == Approx(32.0 / 56));
    CHECK(joined.at("steps_least") == 10);
  }
}
