// The policies on the published conversation trace of Azure, where it is at hand.
#include <string>
#include <vector>

#include "kernels/serving/cost_model.hpp"
#include "kernels/serving/replay.hpp"
#include "kernels/serving/trace_requests.hpp"
#include "tests/support/real_traces.hpp"

using namespace inferometer;

namespace {

std::vector<ServingRequest> trace_requests(const std::string& path, std::int64_t count) {
  std::vector<ServingRequest> requests;
  const auto source = open_requests({.trace = path, .requests = count});
  for (KvRequest request; source->next(request);) requests.push_back(serving_request(request, 0, 32'000));
  return requests;
}

}  // namespace

TEST_CASE("serving real trace: 2000 conversations in 32 slots take 36340 steps static and 16844 otherwise",
          "[serving][real]") {
  const std::string path = test::real_trace("azure_llm_2023_conv.csv");
  if (path.empty()) return;
  const std::vector<ServingRequest> requests = trace_requests(path, 2000);
  REQUIRE(requests.size() == 2000);
  CostModel model({.step_ns = 1});
  // Contiguous slots of a length that every request fits in; chunks so large that no prompt waits for the next step.
  for (const ServingPolicy policy : serving_policies()) {
    CAPTURE(name_of(policy));
    const ServingConfig config = with_contiguous_slots(
        {.policy = policy, .slots = 32, .token_budget = policy == ServingPolicy::chunked ? 1'000'000 : 0}, 16'384);
    const Replay result = replay(config, model, requests);
    const bool fixed = policy == ServingPolicy::static_batch;
    CHECK(result.refused.empty());
    CHECK(result.records.size() == 2000);
    CHECK(result.ledger.steps == (fixed ? 36'340 : 16'844));
    CHECK(slot_occupancy(result.ledger) == Approx(fixed ? 0.456 : 0.983).margin(0.0005));
    CHECK(result.ledger.slot_steps() == 32 * result.ledger.steps);
    CHECK(result.end_ns == result.ledger.steps);
  }
}
