// Requests that are given up, at any point of their way.
#include <cstdint>
#include <vector>

#include "tests/kernels/serving/engine_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

ServingConfig config_of(ServingPolicy policy) {
  return {.policy = policy,
          .slots = 2,
          .num_blocks = 8,
          .block_size = 4,
          .token_budget = policy == ServingPolicy::chunked ? 5 : 0};
}

std::vector<ServingRequest> three_requests() { return {request(1, 12, 8), request(2, 12, 8), request(3, 5, 4)}; }

}  // namespace

TEST_CASE("serving: a request aborted at any step, between or within, returns its blocks and disturbs nobody",
          "[serving][abort]") {
  for (const ServingPolicy policy : serving_policies())
    for (const bool within : {false, true})
      for (const SequenceId victim : {1, 2, 3})
        for (int step = 0;; ++step) {
          CAPTURE(name_of(policy), within, victim, step);
          EngineRun run(config_of(policy));
          for (const ServingRequest& one : three_requests()) run.engine.submit(one);
          for (int i = 0; i < step && run.engine.busy(); ++i) run.step();
          if (!run.engine.busy() || run.records.contains(victim)) break;  // it has ended before
          bool found = false;
          const auto abort = [&] {
            found = run.engine.abort(victim);
            CHECK_FALSE(run.engine.abort(victim));  // once
          };
          if (within) {
            run.step(abort);
          } else {
            abort();
            test::require_sound(run.engine);
          }
          CHECK(found);
          CHECK_FALSE(run.engine.pool().contains(victim));
          run.run();
          CHECK(run.all_returned());
          CHECK(run.engine.pool().usage().free_blocks == 8);
          REQUIRE(run.records.size() == 3);
          for (const ServingRequest& one : three_requests()) {
            const RequestRecord& record = run.records.at(one.id);
            std::vector<TokenId> expected = expected_outputs(one.prompt, one.max_new);
            CHECK((record.outcome == RequestOutcome::aborted) == (one.id == victim));
            if (one.id == victim) {
              REQUIRE(record.outputs.size() < expected.size());
              expected.resize(record.outputs.size());  // what it had said before
            }
            CHECK(record.outputs == expected);
          }
        }
}

TEST_CASE("serving: a request that was preempted can be aborted while it waits", "[serving][abort]") {
  EngineRun run({.slots = 2, .num_blocks = 8, .block_size = 4});
  run.engine.submit(request(1, 12, 8));
  run.engine.submit(request(2, 12, 8));
  while (run.engine.ledger().preemptions == 0) run.step();
  CHECK(run.engine.waiting() == 1);
  CHECK(run.engine.abort(2));
  test::require_sound(run.engine);
  run.run();
  CHECK(run.records.at(2).outcome == RequestOutcome::aborted);
  CHECK(run.records.at(2).outputs.size() == 5);
  CHECK(run.records.at(2).preemptions == 1);
  CHECK(run.records.at(1).token_ns.back() == 8);
}

TEST_CASE("serving: whoever waits behind a request that does not fit runs once that is aborted", "[serving][abort]") {
  EngineRun run({.slots = 3, .num_blocks = 4, .block_size = 4});
  run.engine.submit(request(1, 8, 6));
  run.engine.submit(request(2, 12, 1));  // 3 blocks; 2 are left
  run.engine.submit(request(3, 4, 1));
  run.step();
  CHECK(run.engine.running() == 1);
  CHECK(run.engine.abort(2));
  CHECK(run.step().contains(3));
}

TEST_CASE("serving: the token of a request aborted within a step is discarded", "[serving][abort]") {
  EngineRun run({.slots = 2, .num_blocks = 8, .block_size = 4});
  run.engine.submit(request(1, 3, 2));
  run.step([&] { run.engine.abort(1); });
  CHECK(run.records.at(1).outputs.empty());
  CHECK(run.engine.ledger().discarded == 1);
  CHECK(run.engine.ledger().producing == 0);
  CHECK_FALSE(run.engine.abort(1));
  CHECK_FALSE(run.engine.abort(99));
}

TEST_CASE("serving: an id whose request is being aborted is not free before the step ends", "[serving][abort]") {
  EngineRun run({.slots = 2, .num_blocks = 8, .block_size = 4});
  run.engine.submit(request(1, 3, 2));
  run.step([&] {
    run.engine.abort(1);
    CHECK(fault_of([&] { run.engine.submit(request(1, 3, 2)); }) == BlockPoolFault::live_sequence);
    run.engine.submit(request(2, 3, 1));  // others may come within a step
  });
  run.engine.submit(request(1, 3, 2));
  run.run();
  CHECK(run.records.at(1).outcome == RequestOutcome::completed);
  CHECK(run.records.at(2).outcome == RequestOutcome::completed);
}
