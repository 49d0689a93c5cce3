// What kernels can do to a GPU, end to end: each fault costs its own row, and the row after it is measured.
#include <map>
#include <set>

#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

TEST_CASE("run: a kernel's fault costs its row, and a new worker measures the next one", "[run][worker][faults][gpu]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  const std::vector<std::pair<std::string, std::string>> faults{
      {"cuda.illegal_address", "cudaErrorIllegalAddress"},
      {"cuda.misaligned", "cudaErrorMisalignedAddress"},
      {"cuda.asserts", "cudaErrorAssert"},
  };
  std::vector<CopyRow> rows{{"cuda.copies"}};
  for (std::size_t i = 0; i < faults.size(); ++i) {
    rows.push_back({.variant = faults[i].first});
    rows.push_back({.variant = "cuda.copies", .n = 5000 + static_cast<std::int64_t>(i)});
  }
  const ChildResult result = run_in_child(copy_sweep(rows), {.output = output});
  INFO(result.err);
  CHECK(result.exit_code == 1);
  const Json file = read_json(output);
  REQUIRE(file.at("rows").size() == rows.size());
  CHECK(was_measured(file.at("rows").front()));
  std::set<double> workers;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Json& fault = file.at("rows").at(2 * i + 1);
    const Json& next = file.at("rows").at(2 * i + 2);
    INFO(fault.dump(1) << next.dump(1));
    CHECK(fault.at("status") == "crashed");
    CHECK(fault.at("reason").get<std::string>().find(faults[i].second) != std::string::npos);
    CHECK(fault.at("timing").is_null());
    REQUIRE(was_measured(next));
    workers.insert(next.at("metrics").at("process").get<double>());
  }
  CHECK(workers.size() == faults.size());
  CHECK_FALSE(std::filesystem::exists(output + "l"));
}

TEST_CASE("run: a kernel that never ends is killed at the limit, and the GPU is free for the next row",
          "[run][worker][faults][gpu]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  Sweep sweep = copy_sweep({{"cuda.endless"}, {"cuda.copies"}});
  sweep.limits.row_seconds = 10;
  const ChildResult result = run_in_child(sweep, {.output = output});
  INFO(result.err);
  CHECK(result.exit_code == 1);
  const Json rows = read_json(output).at("rows");
  CHECK(rows.at(0).at("status") == "timed_out");
  CHECK(rows.at(0).at("reason") == "no result within limits.row_seconds = 10 s; killed in phase check");
  CHECK(was_measured(rows.at(1)));
}

TEST_CASE("run: one GPU named twice has two workers that share the rows", "[run][devices][gpu]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  std::vector<CopyRow> rows;
  for (std::int64_t n = 4000; n < 4012; ++n) rows.push_back({.variant = "cuda.copies", .n = n});
  Sweep sweep = copy_sweep(rows);
  for (SweepRow& row : sweep.rows) row.baseline_id.clear();  // rows of one baseline stay on one device
  const ChildResult result = run_in_child(sweep, {.output = output, .devices = {0, 0}});
  INFO(result.err);
  CHECK(result.ended_well());
  const Json file = read_json(output);
  REQUIRE(file.at("rows").size() == rows.size());
  std::map<double, int> rows_of_worker;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = file.at("rows").at(i);
    CHECK(row.at("id") == sweep.rows[i].id);
    CHECK(row.at("device") == file.at("environment").at("gpu").at("uuid"));
    REQUIRE(was_measured(row));
    ++rows_of_worker[row.at("metrics").at("process").get<double>()];
  }
  CHECK(rows_of_worker.size() == 2);
  CHECK_FALSE(file.at("environment").contains("gpus"));
}

TEST_CASE("run: a results file says what the GPU did before the first row", "[run][gpu]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  CHECK(run_in_child(copy_sweep({{"cuda.copies"}}), {.output = output}).ended_well());
  const Json state = read_json(output).at("environment").at("at_start").at("gpu");
  INFO(state.dump(1));
  REQUIRE(state.is_object());
  CHECK(state.at("sm_mhz").get<int>() > 0);
  CHECK(state.at("temperature_c").get<int>() > 0);
  CHECK(state.at("other_processes").is_number_integer());
}

TEST_CASE("run: a results file says that on this GPU cold rows are cold", "[run][gpu][measure][doctor]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  CHECK(run_in_child(copy_sweep({{"cuda.copies"}}), {.output = output}).ended_well());
  const Json environment = read_json(output).at("environment");
  INFO(environment.at("examined").dump(1));
  REQUIRE(environment.at("examined").size() == 1);
  const Json& gpu = environment.at("examined").front();
  CHECK(gpu.at("device") == environment.at("gpu").at("uuid"));
  CHECK(gpu.at("cache_clear") == "works");
  CHECK(gpu.at("cache_rotation") == "works");
  CHECK(gpu.at("cache").at("after_memset_ns").get<double>() > 0);
}
