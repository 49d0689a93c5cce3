// 10,000 random schedules: arrivals, aborts, pools, budgets and policies. A failing one is made as small as it gets and
// printed.
#include <string>

#include "tests/kernels/serving/schedule_run.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

std::string failure_of(const Schedule& schedule) { return ScheduleRun(schedule).failure(); }

}  // namespace

TEST_CASE("serving: 10000 random schedules keep every promise", "[serving][random]") {
  std::int64_t preempted = 0;
  std::int64_t refused = 0;
  std::int64_t aborted = 0;
  std::int64_t discarded = 0;
  std::int64_t reused = 0;
  std::int64_t stalled = 0;
  std::int64_t prefilling = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    const Schedule schedule = random_schedule(seed);
    ScheduleRun run(schedule);
    if (!run.failure().empty()) {
      const Schedule smallest = shrink(schedule, failure_of);
      FAIL("seed " << seed << ", made smaller: " << to_string(smallest) << "\n" << failure_of(smallest));
    }
    preempted += run.ledger().preemptions > 0 ? 1 : 0;
    refused += run.refused();
    aborted += run.aborted();
    discarded += run.ledger().discarded;
    reused += run.ledger().reused_tokens > 0 ? 1 : 0;
    stalled += run.ledger().stalled;
    prefilling += run.ledger().prefilling;
  }
  CAPTURE(preempted, refused, aborted, discarded, reused, stalled, prefilling);
  for (const std::int64_t count : {preempted, refused, aborted, discarded, reused, stalled, prefilling})
    CHECK(count > 500);  // so that the test is about them
}

TEST_CASE("serving: a schedule that fails is made as small as it gets", "[serving][random]") {
  // A model that errs from the sixth token on; whoever has a seventh sees what it said.
  const auto errs = [](const StepBatch& batch, std::span<TokenId> next) {
    for (std::size_t i = 0; i < next.size(); ++i)
      if (batch.rows[i].position + std::ssize(batch.rows[i].tokens) >= 6) ++next[i];
  };
  const auto failure = [&](const Schedule& schedule) { return ScheduleRun(schedule, errs).failure(); };
  int shrunk = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Schedule schedule = random_schedule(seed);
    if (failure(schedule).empty()) continue;
    const Schedule smallest = shrink(schedule, failure);
    CAPTURE(seed, to_string(schedule), to_string(smallest));
    ++shrunk;
    REQUIRE(smallest.requests.size() == 1);
    const PlannedRequest& request = smallest.requests[0];
    CHECK(request.prompt + request.max_new - 1 == 6);
    CHECK(request.arrival == 0);
    CHECK(request.abort == -1);
    CHECK(smallest.config.slots == 1);
    CHECK(smallest.config.num_blocks * smallest.config.block_size >= 6);
    CHECK_FALSE(smallest.config.prefix_reuse);
    CHECK_FALSE(smaller(smallest).empty());
    CHECK(failure_of(smallest).empty());  // the engine is not to blame
  }
  CHECK(shrunk > 10);
}

TEST_CASE("serving: a schedule can be read", "[serving][random]") {
  Schedule schedule;
  schedule.config = {.policy = ServingPolicy::chunked, .slots = 2, .num_blocks = 3, .block_size = 4, .token_budget = 5};
  schedule.requests = {{.arrival = 1, .prompt = 2, .family = 0, .max_new = 3},
                       {.arrival = 0, .prompt = 4, .family = 2, .max_new = 1, .abort = 6, .abort_within = true}};
  CHECK(to_string(schedule) ==
        "chunked, slots 2, 3 blocks of 4, token budget 5\n"
        "  request 0: arrival 1, prompt 2, family 0, max_new 3\n"
        "  request 1: arrival 0, prompt 4, family 2, max_new 1, aborted within step 6");
}
