// The contiguous policies on pools small enough to count by hand, and what holds for every policy.
#include <string>
#include <vector>

#include "reference/kv_memory/model_shape.hpp"
#include "tests/reference/kv_memory/kv_memory_runs.hpp"

using namespace inferometer;
using test::csv_of;
using test::problem_fields;
using test::run_policy;
using test::TemporaryTrace;

namespace {

struct Expected {
  std::int64_t steps, token, reserved, internal, external, free;
};

void check_states(const KvLedger& ledger, const Expected& expected) {
  CHECK(ledger[KvCount::steps] == expected.steps);
  CHECK(ledger[KvCount::token] == expected.token);
  CHECK(ledger[KvCount::reserved] == expected.reserved);
  CHECK(ledger[KvCount::internal] == expected.internal);
  CHECK(ledger[KvCount::external] == expected.external);
  CHECK(ledger[KvCount::free] == expected.free);
  CHECK(ledger[KvCount::cached] == 0);
  CHECK(ledger[KvCount::shared_saved] == 0);
}

Fields with_max_length(const std::string& trace, std::int64_t slots, std::int64_t max_length, Fields more = {}) {
  more.emplace_back("max_length", max_length);
  return problem_fields(trace, slots, more);
}

}  // namespace

TEST_CASE("kv_memory: reserve_max keeps the longest length for everyone", "[kv_memory][policies]") {
  // Prompt 2, 3 outputs: 2, 3, 4 tokens in three steps. Two of 4 slots fit into 10 and leave 2; the third waits for
  // steps 3 to 5 and leaves 6.
  const TemporaryTrace three(csv_of({{2, 3}, {2, 3}, {2, 3}}));
  check_states(run_policy("cpu.reserve_max", with_max_length(three.path(), 10, 4)),
               {.steps = 6, .token = 27, .reserved = 9, .internal = 0, .external = 6, .free = 18});
  // With a maximum of 6 only one fits at a time, leaving 4, and 2 slots of each reservation are never filled.
  check_states(run_policy("cpu.reserve_max", with_max_length(three.path(), 10, 6)),
               {.steps = 9, .token = 27, .reserved = 9, .internal = 18, .external = 24, .free = 12});
}

TEST_CASE("kv_memory: reserve_pow2 rounds the outputs up, reserve_oracle knows them", "[kv_memory][policies]") {
  // Prompt 2, 5 outputs store 6 tokens: 2, 3, 4, 5, 6. Rounded to 8 outputs they reserve 9 of 20 slots: in each of 5
  // steps 3 are never filled and 11 free.
  const TemporaryTrace one(csv_of({{2, 5}}));
  check_states(run_policy("cpu.reserve_pow2", with_max_length(one.path(), 20, 16)),
               {.steps = 5, .token = 20, .reserved = 10, .internal = 15, .external = 0, .free = 55});
  check_states(run_policy("cpu.reserve_oracle", with_max_length(one.path(), 20, 16)),
               {.steps = 5, .token = 20, .reserved = 10, .internal = 0, .external = 0, .free = 70});
  // The maximum bounds it: 8 instead of 9.
  check_states(run_policy("cpu.reserve_pow2", with_max_length(one.path(), 20, 8)),
               {.steps = 5, .token = 20, .reserved = 10, .internal = 10, .external = 0, .free = 60});
}

TEST_CASE("kv_memory: a hole that is too small for the head of the line is external", "[kv_memory][policies]") {
  // 4 + 2 + 4 slots fill 10. After step 0 the second leaves a hole of 2, too small for the fourth, which needs 4 and
  // waits until the first ends after step 2; there it then lies, beside the hole.
  const TemporaryTrace trace(csv_of({{2, 3}, {2, 1}, {1, 4}, {4, 1}}));
  const KvLedger ledger = run_policy("cpu.reserve_oracle", problem_fields(trace.path(), 10));
  CHECK(ledger[KvCount::steps] == 4);
  CHECK(ledger[KvCount::external] == 4);  // steps 1 and 2; in step 0 the pool is full
  CHECK(ledger[KvCount::free] == 2);      // step 3: nobody waits
}

TEST_CASE("kv_memory: buddies round ranges up, and halves without their buddy are external", "[kv_memory][policies]") {
  // 5 slots become 8 and 3 become 4 of a pool of 8 + 4 + 2. The third waits for a 4.
  const TemporaryTrace trace(csv_of({{5, 1}, {2, 2}, {3, 1}}));
  const Fields buddy = problem_fields(trace.path(), 14, {{"contiguous", std::string("buddy")}});
  // Step 0: 8 for 5, 4 for 3 of which 2 filled, 2 left while the third waits. Step 1: the third takes 4 of the 8.
  check_states(
      run_policy("cpu.reserve_oracle", buddy),
      {.steps = 2, .token = 5 + 2 + 3 + 3, .reserved = 1, .internal = 3 + 1 + 1 + 1, .external = 2, .free = 6});
}

TEST_CASE("kv_memory: 12 GiB hold 7 sequences of OPT-13B at 2048 tokens each and leave 1392 slots",
          "[kv_memory][paper]") {
  KvMemoryProblem problem;
  CHECK(problem.token_bytes() == 819'200);  // 800 KiB
  CHECK(problem.pool_slots() == 15728);
  const TemporaryTrace trace(csv_of(std::vector<std::pair<int, int>>(14, {1, 100})));
  const KvLedger ledger = run_policy("cpu.reserve_max", {{"trace", trace.path()}, {"requests", std::int64_t{0}}});
  CHECK(ledger[KvCount::peak_running] == 7);
  CHECK(ledger[KvCount::steps] == 200);
  CHECK(ledger[KvCount::external] == 139'200);  // 1392 slots in 100 steps, while the other 7 wait
  CHECK(ledger[KvCount::free] == 139'200);      // and in 100 more, when nobody does
  CHECK(test::share_of_pool(ledger, KvCount::external) == Approx(0.0885 / 2).epsilon(1e-3));
}

TEST_CASE("kv_memory: quantised keys and values take the bytes of their codes and scales", "[kv_memory][model]") {
  KvMemoryProblem problem{.model = "llama3_8b"};
  CHECK(problem.token_bytes() == 131'072);  // 2 x 32 layers x 8 heads x 128 x 2 bytes
  problem.kv_bits = 8;
  CHECK(problem.token_bytes() == 66'560);  // 2 x 32 x 8 x (128 codes + a scale of 2 bytes)
  problem.kv_bits = 4;
  problem.kv_group_size = 32;
  CHECK(problem.token_bytes() == 36'864);  // 2 x 32 x 8 x (64 bytes of codes + 4 scales)
  CHECK(model_shape("opt_13b").max_length == 2048);
  CHECK_THROWS_AS(model_shape("opt"), std::out_of_range);
}

TEST_CASE("kv_memory: requests that can never fit are refused, and nobody waits behind them", "[kv_memory][policies]") {
  // Too long for the model, without a prompt, and one of exactly the longest length.
  const TemporaryTrace trace(csv_of({{30, 4}, {0, 5}, {30, 3}}));
  for (const char* policy : test::kPolicies) {
    CAPTURE(policy);
    const KvLedger ledger =
        run_policy(policy, with_max_length(trace.path(), 32, 32, {{"block_size", std::int64_t{4}}}));
    CHECK(ledger[KvCount::requests] == 3);
    CHECK(ledger[KvCount::refused] == 2);
    CHECK(ledger[KvCount::refused_output] == 9);
    CHECK(ledger[KvCount::steps] == 3);
    CHECK(ledger[KvCount::generated] == 3);
  }
}

TEST_CASE("kv_memory: requests without outputs need no slot and no step", "[kv_memory][policies]") {
  const TemporaryTrace trace(csv_of({{5, 0}, {0, 0}}));
  for (const char* policy : test::kPolicies) {
    CAPTURE(policy);
    const KvLedger ledger = run_policy(policy, problem_fields(trace.path(), 64));
    CHECK(ledger[KvCount::requests] == 2);
    CHECK(ledger[KvCount::refused] == 0);
    CHECK(ledger[KvCount::steps] == 0);
  }
}

TEST_CASE("kv_memory: the order of admission decides who waits", "[kv_memory][policies]") {
  const TemporaryTrace trace(csv_of({{9, 1}, {3, 1}, {7, 1}}));
  const auto in_order = [&](const char* order) {
    return run_policy("cpu.reserve_oracle", problem_fields(trace.path(), 10, {{"order", std::string(order)}}));
  };
  // As they arrive: 9, then 3 and 7. The shortest first: 3 and 7 fill the pool, then 9.
  check_states(in_order("fcfs"), {.steps = 2, .token = 19, .reserved = 0, .internal = 0, .external = 1, .free = 0});
  check_states(in_order("shortest_first"),
               {.steps = 2, .token = 19, .reserved = 0, .internal = 0, .external = 0, .free = 1});
}

TEST_CASE("kv_memory: requests that arrive by the trace find an idle pool, whose slots are free",
          "[kv_memory][policies]") {
  const TemporaryTrace trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:00,4,2\n2023-01-01 00:00:00.1,4,1\n");
  for (const char* policy : test::kPolicies) {
    CAPTURE(policy);
    const KvLedger ledger = run_policy(
        policy,
        with_max_length(trace.path(), 8, 8,
                        {{"arrivals", std::string("trace")}, {"step_ms", 30.0}, {"block_size", std::int64_t{2}}}));
    // The second arrives in step 4, the first that does not begin before 100 ms; steps 2 and 3 are idle.
    CHECK(ledger[KvCount::steps] == 5);
    CHECK(ledger[KvCount::token] == 4 + 5 + 4);
    CHECK(ledger[KvCount::generated] == 3);
    CHECK(ledger[KvCount::external] == 0);
  }
}
