// Prompts with equal beginnings in the serving engine.
#include <vector>

#include "kernels/serving/cost_model.hpp"
#include "tests/kernels/serving/engine_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

ServingConfig config_of(ServingPolicy policy, bool prefix_reuse) {
  return {.policy = policy,
          .slots = 4,
          .num_blocks = 40,
          .block_size = 4,
          .prefix_reuse = prefix_reuse,
          .token_budget = policy == ServingPolicy::chunked ? 6 : 0};
}

}  // namespace

TEST_CASE("serving: full blocks of an equal beginning are reused, the last token never", "[serving][prefix]") {
  std::vector<TokenId> first = consecutive(0, 16);
  std::vector<TokenId> second = consecutive(0, 10);
  for (const TokenId token : {90, 91, 92, 93}) second.push_back(token);
  for (const ServingPolicy policy : serving_policies()) {
    CAPTURE(name_of(policy));
    EngineRun run(config_of(policy, true));
    const auto serve = [&](SequenceId id, const std::vector<TokenId>& prompt) {
      run.engine.submit({.id = id, .prompt = prompt, .max_new = 3});
      run.run();
      CHECK(run.records.at(id).outputs == expected_outputs(prompt, 3));  // as in a cold run
      return run.records.at(id).reused_tokens;
    };
    CHECK(serve(1, first) == 0);
    CHECK(serve(2, second) == 8);
    CHECK(serve(3, first) == 12);
    CHECK(run.engine.ledger().reused_tokens == 20);
    CHECK(run.engine.ledger().computed_tokens == (16 + 2) + (14 + 2) + (16 + 2) - 20);
  }
}

TEST_CASE("serving: a replay finds nothing that another left in a cache", "[serving][prefix]") {
  std::vector<ServingRequest> requests;
  for (SequenceId id = 0; id < 12; ++id) {
    requests.push_back(request(id % 3, 9 + id, 4));  // three beginnings
    requests.back().id = id;
    requests.back().arrival_ns = 1000 * id;
  }
  CostModel model({.step_ns = 900, .token_ns = 10, .key_ns = 1, .pair_ns = 0.5});
  for (const ServingPolicy policy : serving_policies()) {
    CAPTURE(name_of(policy));
    const Replay first = replay(config_of(policy, true), model, requests);
    const Replay second = replay(config_of(policy, true), model, requests);
    CHECK(first.ledger.reused_tokens > 0);
    CHECK(first == second);
    CHECK(first.end_ns < replay(config_of(policy, false), model, requests).end_ns);
  }
}

TEST_CASE("serving: an engine that goes on has a warm cache, which its ledger shows", "[serving][prefix]") {
  EngineRun run(config_of(ServingPolicy::continuous, true));
  for (int time = 0; time < 2; ++time) {
    run.engine.submit(request(1, 13, 2));
    run.run();
  }
  CHECK(run.engine.ledger().reused_tokens == 12);
}
