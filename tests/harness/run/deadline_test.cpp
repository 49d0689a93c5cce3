#include "harness/run/deadline.hpp"

#include "tests/support/catch.hpp"

using inferometer::Deadline;
using namespace std::chrono_literals;

TEST_CASE("deadline: passes after its length, looked at every tick", "[run][deadline]") {
  const Deadline::Clock::time_point start{};
  Deadline deadline(start, 1200ms);
  CHECK(deadline.next_look() == start + Deadline::kTick);
  for (const auto now : {500ms, 1000ms, 1199ms}) {
    deadline.look(start + now);
    CHECK_FALSE(deadline.passed());
    CHECK(deadline.next_look() <= start + 1200ms);
  }
  deadline.look(start + 1200ms);
  CHECK(deadline.passed());
}

TEST_CASE("deadline: time in which its keeper stood still does not count", "[run][deadline]") {
  const Deadline::Clock::time_point start{};
  Deadline deadline(start, 2s);
  deadline.look(start + 100ms);
  deadline.look(start + 1h);  // stopped: of this hour one tick counts, 600 ms in all
  CHECK_FALSE(deadline.passed());
  for (const auto later : {500ms, 1000ms, 1399ms}) {
    deadline.look(start + 1h + later);
    CHECK_FALSE(deadline.passed());
  }
  deadline.look(start + 1h + 1400ms);
  CHECK(deadline.passed());
}
