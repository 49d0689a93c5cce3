// The policies on schedules small enough to count by hand.
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/operator/fields.hpp"
#include "tests/kernels/serving/engine_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

const ServingConfig kRoomy{.policy = ServingPolicy::continuous, .slots = 4, .num_blocks = 100, .block_size = 4};

std::string refusal_of(const ServingConfig& config) {
  try {
    check(config);
  } catch (const ProblemError& error) {
    return error.what();
  }
  return "";
}

// Steps of two requests of prompt 12 and max_new 8 in a pool of so many blocks of 4.
EngineRun two_requests(std::int32_t num_blocks, bool prefix_reuse) {
  return run_all({.slots = 4, .num_blocks = num_blocks, .block_size = 4, .prefix_reuse = prefix_reuse},
                 {request(1, 12, 8), request(2, 12, 8)});
}

EngineRun eight_outputs(ServingPolicy policy) {
  ServingConfig config = kRoomy;
  config.policy = policy;
  if (policy == ServingPolicy::chunked) config.token_budget = 100;
  std::vector<ServingRequest> requests;
  for (const std::int64_t outputs : {2, 2, 2, 10, 2, 2, 2, 10})
    requests.push_back(request(std::ssize(requests), 3, outputs));
  return run_all(config, requests);
}

}  // namespace

TEST_CASE("serving: a prompt that fills the pool is served with one output and refused with two", "[serving]") {
  for (const ServingPolicy policy : serving_policies()) {
    CAPTURE(name_of(policy));
    EngineRun run({.policy = policy,
                   .slots = 4,
                   .num_blocks = 4,
                   .block_size = 16,
                   .token_budget = policy == ServingPolicy::chunked ? 64 : 0});
    try {
      run.engine.submit(request(1, 64, 2));
      FAIL("nothing was refused");
    } catch (const BlockPoolError& error) {
      CHECK(error.fault() == BlockPoolFault::never_fits);
      CHECK_THAT(error.what(), contains_text("a prompt of 64 tokens and max_new 2 store 65 tokens, which need 5 "
                                             "blocks of 16; the pool has 4"));
    }
    CHECK_FALSE(run.engine.busy());  // nobody waits behind it
    run.engine.submit(request(1, 64, 1));
    run.run();
    CHECK(run.now == 1);
    CHECK(run.records.at(1).outputs == expected_outputs(request(1, 64, 1).prompt, 1));
    CHECK(run.all_returned());
  }
}

TEST_CASE("serving: what is longer than a contiguous slot is refused, although two slots would hold it", "[serving]") {
  for (const ServingPolicy policy : serving_policies()) {
    CAPTURE(name_of(policy));
    EngineRun run(with_contiguous_slots(
        {.policy = policy, .slots = 4, .token_budget = policy == ServingPolicy::chunked ? 64 : 0}, 20));
    try {
      run.engine.submit(request(1, 16, 6));
      FAIL("nothing was refused");
    } catch (const BlockPoolError& error) {
      CHECK(error.fault() == BlockPoolFault::never_fits);
      CHECK_THAT(error.what(), contains_text("a prompt of 16 tokens and max_new 6 store 21 tokens; a request may "
                                             "store 20"));
    }
    run.engine.submit(request(1, 16, 5));
    run.step();
    CHECK(run.engine.pool().table(1).size() == 1);
    run.run();
    CHECK(run.records.at(1).outputs == expected_outputs(request(1, 16, 5).prompt, 5));
  }
}

TEST_CASE("serving: when blocks run out the latest request gives up its own and is computed again", "[serving]") {
  const EngineRun roomy = two_requests(20, false);
  CHECK(roomy.records.at(1).token_ns.back() == 8);
  CHECK(roomy.records.at(2).token_ns.back() == 8);
  CHECK(roomy.engine.ledger().preemptions == 0);

  const EngineRun tight = two_requests(8, false);
  CHECK(tight.records.at(1).token_ns.back() == 8);
  CHECK(tight.records.at(1).preemptions == 0);
  CHECK(tight.records.at(2).token_ns.back() == 11);
  CHECK(tight.records.at(2).preemptions == 1);
  CHECK(tight.records.at(2).recomputed_tokens == 16);
  CHECK(tight.engine.ledger().preemptions == 1);
  CHECK(tight.engine.ledger().recomputed_tokens == 16);
  for (const SequenceId id : {1, 2}) CHECK(tight.records.at(id).outputs == roomy.records.at(id).outputs);

  // The cache still holds three of its four blocks: the other took the last.
  const EngineRun reusing = two_requests(8, true);
  CHECK(reusing.records.at(2).token_ns.back() == 11);
  CHECK(reusing.records.at(2).recomputed_tokens == 4);
  CHECK(reusing.records.at(2).reused_tokens == 0);  // of the prompt, when it came
  for (const SequenceId id : {1, 2}) CHECK(reusing.records.at(id).outputs == roomy.records.at(id).outputs);
}

TEST_CASE("serving: impossible requests are refused and change nothing", "[serving]") {
  EngineRun run(kRoomy);
  ServingEngine& engine = run.engine;
  CHECK(fault_of([&] { engine.submit(request(1, 0, 5)); }) == BlockPoolFault::empty_prompt);
  CHECK(fault_of([&] { engine.submit(request(1, 0, 0)); }) == BlockPoolFault::empty_prompt);
  CHECK(fault_of([&] { engine.submit(request(1, 3, -1)); }) == BlockPoolFault::wrong_size);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(fault_of([&] { engine.submit(request(1, 3, most)); }) == BlockPoolFault::never_fits);
  CHECK_FALSE(engine.busy());

  engine.submit(request(1, 3, 2));
  CHECK(fault_of([&] { engine.submit(request(1, 3, 2)); }) == BlockPoolFault::live_sequence);  // it waits
  run.step();
  CHECK(fault_of([&] { engine.submit(request(1, 3, 2)); }) == BlockPoolFault::live_sequence);  // it runs
  run.step();
  CHECK_FALSE(engine.busy());
  engine.submit(request(1, 3, 2));  // it has ended
  run.run();
  CHECK(run.now == 4);
}

TEST_CASE("serving: a request for no tokens has ended at once and takes nothing", "[serving]") {
  EngineRun run(kRoomy);
  run.engine.submit(request(1, 3, 0));
  CHECK_FALSE(run.engine.busy());
  CHECK(run.engine.pool().usage().free_blocks == kRoomy.num_blocks);
  const std::vector<RequestRecord> ended = run.engine.take_ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].id == 1);
  CHECK(ended[0].outcome == RequestOutcome::completed);
  CHECK(ended[0].outputs.empty());
  CHECK(run.engine.take_ended().empty());
  run.engine.submit(request(1, 3, 1));  // the id is free
  CHECK(run.engine.busy());
}

TEST_CASE("serving: a prompt in chunks takes what decoding leaves of the budget", "[serving]") {
  EngineRun run({.policy = ServingPolicy::chunked, .slots = 4, .num_blocks = 100, .block_size = 4, .token_budget = 8});
  for (const SequenceId id : {1, 2, 3}) run.engine.submit(request(id, 2, 20));
  run.step();
  run.engine.submit(request(4, 20, 3));
  for (int i = 0; i < 4; ++i) CHECK(run.step() == std::map<SequenceId, std::int64_t>{{1, 1}, {2, 1}, {3, 1}, {4, 5}});
  CHECK(run.engine.ledger().prefilling == 3);  // the fourth chunk gave a token
  CHECK(run.step() == std::map<SequenceId, std::int64_t>{{1, 1}, {2, 1}, {3, 1}, {4, 1}});
  run.run();
  CHECK(run.records.at(4).token_ns.front() == 5);
  CHECK(run.records.at(4).outputs == expected_outputs(request(4, 20, 3).prompt, 3));
  for (const SequenceId id : {1, 2, 3}) {
    CHECK(run.records.at(id).outputs == expected_outputs(request(id, 2, 20).prompt, 20));
    CHECK(run.records.at(id).token_ns.back() == 20);  // a token in every step
  }
  CHECK(run.engine.ledger().stalled == 0);
}

TEST_CASE("serving: a prompt in chunks starts when all its blocks are free, not only those of its first chunk",
          "[serving]") {
  EngineRun run({.policy = ServingPolicy::chunked, .slots = 2, .num_blocks = 6, .block_size = 4, .token_budget = 4});
  run.engine.submit(request(1, 9, 2));   // 3 blocks
  run.engine.submit(request(2, 16, 1));  // 4 blocks
  for (const std::int64_t chunk : {4, 4, 1, 1}) CHECK(run.step() == std::map<SequenceId, std::int64_t>{{1, chunk}});
  CHECK(run.step() == std::map<SequenceId, std::int64_t>{{2, 4}});
}

TEST_CASE("serving: a prompt in chunks that is preempted half-way starts again and says the same", "[serving]") {
  // Request 1 grows into the blocks of request 2, whose prompt of 16 comes 2 tokens a step, beside the other's one.
  const EngineRun run =
      run_all({.policy = ServingPolicy::chunked, .slots = 2, .num_blocks = 6, .block_size = 4, .token_budget = 3},
              {request(1, 2, 20), request(2, 16, 2)});
  CHECK(run.records.at(1).preemptions == 0);
  CHECK(run.records.at(2).preemptions > 0);
  CHECK(run.records.at(2).recomputed_tokens > 0);
  CHECK(run.records.at(1).outputs == expected_outputs(request(1, 2, 20).prompt, 20));
  CHECK(run.records.at(2).outputs == expected_outputs(request(2, 16, 2).prompt, 2));
}

TEST_CASE("serving: with 4 slots a static batch takes 20 steps, and joining at every step 14", "[serving]") {
  const EngineRun fixed = eight_outputs(ServingPolicy::static_batch);
  CHECK(fixed.now == 20);
  CHECK(slot_occupancy(fixed.engine.ledger()) == Approx(0.40));
  CHECK(fixed.engine.ledger().producing == 32);
  CHECK(fixed.engine.ledger().ended == 48);
  // Both batches: a step of 4 prompts of 3, one of 4 rows, then 8 of one row and 3 of padding.
  CHECK(fixed.engine.ledger().padding_tokens == 48);
  CHECK(padding_share(fixed.engine.ledger()) == Approx(48.0 / (48 + 2 * (12 + 4 + 8))));
  for (const ServingPolicy policy : {ServingPolicy::iteration, ServingPolicy::continuous, ServingPolicy::chunked}) {
    CAPTURE(name_of(policy));
    const EngineRun run = eight_outputs(policy);
    CHECK(run.now == 14);
    CHECK(slot_occupancy(run.engine.ledger()) == Approx(32.0 / 56));
    CHECK(run.engine.ledger().idle == 24);
    CHECK(run.engine.ledger().padding_tokens == 0);
  }
}

TEST_CASE("serving: prompts are padded to the longest of a static batch", "[serving]") {
  const EngineRun run = run_all({.policy = ServingPolicy::static_batch, .slots = 3, .num_blocks = 100, .block_size = 4},
                                {request(1, 10, 2), request(2, 4, 1)});
  CHECK(run.engine.ledger().computed_tokens == 10 + 4 + 1);
  CHECK(run.engine.ledger().padding_tokens == 6 + 1);
  CHECK(run.engine.ledger().idle == 2);
}

TEST_CASE("serving: the last static batch may be smaller, and its slots are empty rather than ended", "[serving]") {
  const EngineRun run = run_all({.policy = ServingPolicy::static_batch, .slots = 2, .num_blocks = 100, .block_size = 4},
                                {request(1, 4, 2), request(2, 4, 3), request(3, 4, 5)});
  const ServingLedger& ledger = run.engine.ledger();
  CHECK(ledger.steps == 3 + 5);
  CHECK(ledger.producing == 2 + 3 + 5);
  CHECK(ledger.ended == 1);
  CHECK(ledger.idle == 5);
  CHECK(ledger.padding_tokens == 1);
}

TEST_CASE("serving: who reserves is admitted when all it may store fits, and is never preempted", "[serving]") {
  // 4 blocks each of 8: two at a time, although their prompts take one.
  const std::vector<ServingRequest> requests{request(1, 4, 13), request(2, 4, 13), request(3, 4, 13)};
  for (const ServingPolicy policy : {ServingPolicy::static_batch, ServingPolicy::iteration}) {
    const EngineRun run = run_all({.policy = policy, .slots = 3, .num_blocks = 8, .block_size = 4}, requests);
    CHECK(run.engine.ledger().peak_running == 2);
    CHECK(run.engine.ledger().blocked == 13);
    CHECK(run.engine.ledger().preemptions == 0);
  }
  const EngineRun paged = run_all({.slots = 3, .num_blocks = 8, .block_size = 4}, requests);
  CHECK(paged.engine.ledger().peak_running == 3);
  CHECK(paged.engine.ledger().preemptions > 0);
}

TEST_CASE("serving: prompts that run alone make those that decode wait", "[serving]") {
  ServingConfig config = kRoomy;
  config.prompts_alone = true;
  EngineRun run(config);
  run.engine.submit(request(1, 5, 4));
  run.step();
  run.engine.submit(request(2, 6, 2));
  CHECK(run.step() == std::map<SequenceId, std::int64_t>{{2, 6}});
  CHECK(run.engine.ledger().stalled == 1);
  CHECK(run.step() == std::map<SequenceId, std::int64_t>{{1, 1}, {2, 1}});
  run.run();
  CHECK(run.records.at(1).token_ns == std::vector<std::int64_t>{1, 3, 4, 5});
}

TEST_CASE("serving: every policy says the same, over blocks and over contiguous slots", "[serving]") {
  std::vector<ServingRequest> requests;
  for (SequenceId id = 0; id < 24; ++id) {
    requests.push_back(request(id, 1 + id * 7 % 23, 1 + id * 5 % 17));
    if (id % 3 == 1) requests.back().prompt = requests[static_cast<std::size_t>(id) - 1].prompt;
  }
  bool preempted = false;
  for (const ServingPolicy policy : serving_policies())
    for (const bool contiguous : {false, true})
      for (const bool prefix_reuse : {false, true}) {
        CAPTURE(name_of(policy), contiguous, prefix_reuse);
        ServingConfig config{.policy = policy,
                             .slots = 6,
                             .num_blocks = 13,
                             .block_size = 4,
                             .prefix_reuse = prefix_reuse,
                             .token_budget = policy == ServingPolicy::chunked ? 9 : 0};
        if (contiguous) config = with_contiguous_slots(config, 40);
        const EngineRun run = run_all(config, requests);
        for (const ServingRequest& one : requests) {
          CAPTURE(one.id);
          CHECK(run.records.at(one.id).outputs == expected_outputs(one.prompt, one.max_new));
        }
        preempted = preempted || run.engine.ledger().preemptions > 0;
        if (contiguous) CHECK(run.engine.ledger().preemptions == 0);
      }
  CHECK(preempted);
}

TEST_CASE("serving: a configuration that cannot be is refused by field", "[serving]") {
  CHECK(refusal_of(kRoomy).empty());
  ServingConfig config = kRoomy;
  config.slots = 0;
  CHECK(refusal_of(config) == "slots must be at least 1, got 0");
  config = kRoomy;
  config.token_budget = 8;
  CHECK(refusal_of(config) == "token_budget must be 0 (no limit) where the policy is continuous, got 8");
  config.policy = ServingPolicy::chunked;
  CHECK(refusal_of(config).empty());
  config.token_budget = 3;
  CHECK(refusal_of(config) == "token_budget must be at least 4, got 3");
  config = kRoomy;
  config.policy = ServingPolicy::static_batch;
  config.prompts_alone = true;
  CHECK(refusal_of(config) == "prompts_alone needs the policy continuous, got static");
  config = kRoomy;
  config.block_size = 0;
  CHECK(refusal_of(config) == "block_size must be at least 1, got 0");
  CHECK_THROWS_AS(ServingEngine(config), ProblemError);
  config.slots = std::int64_t{1} << 31;
  CHECK_THROWS_AS(with_contiguous_slots(config, 16), ProblemError);
}

TEST_CASE("serving: a step begins once and ends once, with a token for each row", "[serving]") {
  ServingEngine engine(kRoomy);
  CHECK_THROWS_AS(engine.end_step({}, 0), std::logic_error);
  engine.submit(request(1, 3, 2));
  engine.begin_step();
  CHECK_THROWS_AS(engine.begin_step(), std::logic_error);
  CHECK_THROWS_AS(engine.end_step({}, 0), std::invalid_argument);
  const std::vector<TokenId> next{7};
  engine.end_step(next, 1);
  CHECK_FALSE(engine.in_step());
  test::require_sound(engine);
}
