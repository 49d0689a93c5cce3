// measure.kernel_times, end to end.
#include <set>

#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

TEST_CASE("run: a row that a profiler looked at leaves its worker behind, and the next gets a new one",
          "[run][worker][profiler][gpu]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  Sweep sweep =
      copy_sweep({{"cuda.copies"}, {.variant = "cuda.copies", .n = 5000}, {.variant = "cuda.copies", .n = 6000}});
  sweep.measure.kernel_times = true;
  const ChildResult result = run_in_child(sweep, {.output = output});
  INFO(result.err);
  CHECK(result.ended_well());
  CHECK(result.err.find("worker") == std::string::npos);  // its end is no mishap
  std::set<double> workers;
  const Json results = read_json(output);  // outlives the loop over its rows
  for (const Json& row : results.at("rows")) {
    INFO(row.dump(1));
    REQUIRE(was_measured(row));
    const Json& timing = row.at("timing");
    CHECK(timing.contains("profiler") != timing.contains("profiler_absent"));
    if (timing.contains("profiler")) CHECK(timing.at("profiler").at("samples") == timing.at("isolated").at("samples"));
    workers.insert(row.at("metrics").at("process").get<double>());
  }
  CHECK(workers.size() == sweep.rows.size());
}
