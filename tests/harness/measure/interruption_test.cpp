#include "harness/measure/interruption.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

// Of `samples`, the fastest of which took 100 ns.
bool interrupted(const std::vector<double>& preempted_ns, int samples, double launched_ns = 0) {
  IsolatedTiming timing;
  timing.samples = samples;
  timing.min_ns = samples == 1 && !preempted_ns.empty() ? preempted_ns.front() : 100;
  return is_interrupted(preempted_ns, timing, launched_ns);
}

}  // namespace

TEST_CASE("interruption: more than one sample in twenty, each longer than the fastest by a tenth", "[measure]") {
  CHECK(interrupted({150, 150}, 30));
  CHECK_FALSE(interrupted({150}, 30));
  CHECK_FALSE(interrupted({105, 109, 105}, 30));  // a thread lost its processor, and no time
  CHECK_FALSE(interrupted({}, 30));
  CHECK_FALSE(interrupted({105, 105}, 30, 50));  // samples stand against each other
}

TEST_CASE("interruption: a single sample stands against the launch before it", "[measure]") {
  CHECK(interrupted({150}, 1, 100));
  CHECK_FALSE(interrupted({105}, 1, 100));
  CHECK_FALSE(interrupted({150}, 1, 400));  // the first launch was the slow one
  CHECK_FALSE(interrupted({150}, 1));
  CHECK_FALSE(interrupted({}, 1, 10));  // slower, but nobody took its processor
}
