#include "harness/measure/event_cost.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"

using namespace inferometer;

TEST_CASE("event cost: isolated times of an empty kernel and of longer ones beside a profiler's, or why there are none",
          "[measure][profiler][gpu][doctor]") {
  std::string absent;
  const auto gpu = test::gpu();
  const auto cost = measure_event_cost(*gpu, absent);
  CHECK(cost.has_value() == absent.empty());
  if (!cost) {
    WARN("no profiler: " << absent);
    return;
  }
  REQUIRE(cost->kernels.size() == 4);
  for (const EventCost::Kernel& kernel : cost->kernels) {
    CAPTURE(kernel.told_ns, kernel.isolated_ns, kernel.profiler_ns);
    CHECK(kernel.profiler_ns > 0.98 * kernel.told_ns);
    CHECK(kernel.isolated_ns > kernel.told_ns);
  }
  CHECK(cost->least_ns() <= cost->most_ns());
}
