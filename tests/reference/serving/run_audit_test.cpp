// Negative controls: a run with one wrong count, token or time must fail its audit.
#include <functional>
#include <string>
#include <vector>

#include "reference/serving/run_audit.hpp"
#include "tests/reference/serving/serving_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

using Spoil = std::function<void(ServingRun&)>;

// Contiguous slots, so that steps are recounted too.
Fields contiguous() { return {{"block_size", integer(0)}, {"pool_bytes", pool_of(512)}}; }

void expect_found(const std::string& variant, const Fields& fields, const std::vector<Spoil>& spoils) {
  const ServingProblem problem = serving_problem(fields);
  const ServingRun right = run_serving(variant, fields);
  REQUIRE(audit_run(problem, variant, right).empty());
  for (std::size_t i = 0; i < spoils.size(); ++i) {
    CAPTURE(variant, i);
    ServingRun wrong = right;
    spoils[i](wrong);
    CHECK_FALSE(audit_run(problem, variant, wrong).empty());
  }
}

}  // namespace

TEST_CASE("serving audit: every count that is off by one is found", "[serving][judge]") {
  for (const char* policy : {"static", "iteration", "continuous"}) {
    const std::vector<Spoil> spoils{[](ServingRun& run) { ++run.ledger.slots; },
                                    [](ServingRun& run) { ++run.ledger.steps; },
                                    [](ServingRun& run) { ++run.ledger.producing; },
                                    [](ServingRun& run) { ++run.ledger.prefilling; },
                                    [](ServingRun& run) { ++run.ledger.discarded; },
                                    [](ServingRun& run) { ++run.ledger.stalled; },
                                    [](ServingRun& run) { ++run.ledger.ended; },
                                    [](ServingRun& run) { ++run.ledger.blocked; },
                                    [](ServingRun& run) { ++run.ledger.idle; },
                                    [](ServingRun& run) { ++run.ledger.ended, --run.ledger.idle; },
                                    [](ServingRun& run) { ++run.ledger.computed_tokens; },
                                    [](ServingRun& run) { ++run.ledger.recomputed_tokens; },
                                    [](ServingRun& run) { ++run.ledger.padding_tokens; },
                                    [](ServingRun& run) { ++run.ledger.reused_tokens; },
                                    [](ServingRun& run) { ++run.ledger.preemptions; },
                                    [](ServingRun& run) { ++run.ledger.peak_running; },
                                    [](ServingRun& run) { ++run.ledger.kv_token_steps; },
                                    [](ServingRun& run) { run.ledger.kv_taken_peak += 1000; },
                                    [](ServingRun& run) { run.ledger.kv_taken_steps = run.ledger.kv_token_steps - 1; },
                                    [](ServingRun& run) { ++run.work.sampled; },
                                    [](ServingRun& run) { ++run.work.keys; },
                                    [](ServingRun& run) { ++run.work.pairs; },
                                    [](ServingRun& run) { run.times.end_ns *= 2; },
                                    [](ServingRun& run) { run.times.busy_ns = run.times.end_ns + 1; },
                                    [](ServingRun& run) { run.times.roofline_ns /= 2; },
                                    [](ServingRun& run) { run.times.predicted_ns *= 2; },
                                    [](ServingRun& run) { ++run.times.second_ns; },
                                    [](ServingRun& run) { run.clock = ServingClock::device; }};
    expect_found(std::string("cpu.simulated_") + policy, contiguous(), spoils);
  }
}

TEST_CASE("serving audit: a wrong token and a time that runs backwards are found", "[serving][judge]") {
  const std::vector<Spoil> spoils{
      [](ServingRun& run) { ++run.requests[7]->outputs.back(); },
      [](ServingRun& run) { run.requests[7]->outputs = run.requests[8]->outputs; },
      [](ServingRun& run) { run.requests[0]->token_ns.front() = -1; },
      [](ServingRun& run) { run.requests[0]->token_ns.back() = run.times.end_ns + 1; },
      [](ServingRun& run) { std::swap(run.requests[0]->token_ns.front(), run.requests[0]->token_ns.back()); },
      [](ServingRun& run) { ++run.requests[3]->preemptions; },
      [](ServingRun& run) { ++run.requests[3]->reused_tokens; }};
  for (const char* policy : kServingPolicies) expect_found(std::string("cpu.simulated_") + policy, {}, spoils);
}

TEST_CASE("serving audit: steps are recounted in contiguous slots alone", "[serving][judge]") {
  CHECK(recount_slots(serving_problem(contiguous()), "static"));
  CHECK_FALSE(recount_slots(serving_problem(contiguous()), "chunked"));
  CHECK_FALSE(recount_slots(serving_problem(), "static"));
  Fields later = contiguous();
  later.emplace_back("arrivals", std::string("poisson"));
  CHECK_FALSE(recount_slots(serving_problem(later), "static"));
}
