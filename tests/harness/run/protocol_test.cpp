// Supervisor and worker: what one writes, the other reads.
#include "harness/run/protocol.hpp"

#include "harness/results/record_json.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("protocol: a worker is asked to measure as the config says", "[run][worker]") {
  SessionConfig config;
  config.row.measure = {.cache = CacheMode::warm,
                        .min_samples = 3,
                        .max_samples = 4,
                        .max_seconds = 0.5,
                        .relative_ci = 0.1,
                        .rest_seconds = 0.25,
                        .kernel_times = true};
  config.row.limits.row_seconds = 7;
  const Json sent = Json::parse(to_line(start_message(config)));
  const SessionConfig received = start_from(sent);
  CHECK(received.row.measure.cache == CacheMode::warm);
  CHECK(received.row.measure.min_samples == 3);
  CHECK(received.row.measure.max_samples == 4);
  CHECK(received.row.measure.max_seconds == 0.5);
  CHECK(received.row.measure.relative_ci == 0.1);
  CHECK(received.row.measure.rest_seconds == 0.25);
  CHECK(received.row.measure.kernel_times);
  CHECK(start_message(received) == sent);
}
