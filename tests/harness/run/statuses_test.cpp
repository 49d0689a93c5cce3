// Every way a row can end, end to end: supervisor, worker, journal and results file.
#include <map>

#include <unistd.h>

#include "tests/harness/run/child_run.hpp"
#include "tests/support/test_copy.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// Row of each variant, which stands once in the sweep.
std::map<std::string, Json> rows_by_variant(const std::string& path) {
  std::map<std::string, Json> rows;
  const Json file = read_json(path);
  for (const Json& row : file.at("rows")) rows[row.at("variant")] = row;
  return rows;
}

std::string reason_of(const Json& row) { return row.at("reason").is_null() ? "" : row.at("reason").get<std::string>(); }

}  // namespace

TEST_CASE("run: each fault costs its own row and says what happened", "[run][worker]") {
  const ScratchFolder folder;
  const std::string output = folder / "results.json";
  Sweep sweep = copy_sweep({{"cpu.right"},
                            {"cpu.zeros"},
                            {"cpu.nothing"},
                            {"cpu.wrong_later"},
                            {"cpu.stale"},
                            {"cpu.throws"},
                            {"cpu.throws_int"},
                            {"cpu.aborts"},
                            {"cpu.segfaults"},
                            {"cpu.leaves"},
                            {"cpu.greedy"},
                            {"cpu.choosy"},
                            {"cpu.chatty"},
                            {.variant = "cpu.right", .n = 8192}});
  const ChildResult result = run_in_child(sweep, {.output = output});
  INFO(result.err);
  INFO(result.out);
  CHECK(result.exit_code == 1);
  const Json file = read_json(output);
  REQUIRE(file.at("rows").size() == sweep.rows.size());
  CHECK(was_measured(file.at("rows").back()));  // the row after all faults
  const auto rows = rows_by_variant(output);
  const std::map<std::string, std::pair<std::string, std::string>> wanted{
      {"cpu.right", {"measured", ""}},
      {"cpu.zeros", {"incorrect", ""}},
      {"cpu.nothing", {"incorrect", ""}},
      {"cpu.wrong_later", {"incorrect", "after timing: "}},
      {"cpu.stale", {"incorrect", "after timing: "}},
      {"cpu.throws", {"error", "the tile is too wide"}},
      {"cpu.throws_int", {"error", "no std::exception"}},
      {"cpu.aborts", {"crashed", "assertion `tile < tiles' failed"}},
      {"cpu.segfaults", {"crashed", "in phase check"}},
      {"cpu.leaves", {"crashed", "exit code 0"}},
      {"cpu.greedy", {"out_of_memory", "1125899906842624"}},  // 2^50, as asked for
      {"cpu.choosy", {"unsupported", "n must be a multiple of 1024 and negative, got 4096"}},
      {"cpu.chatty", {"measured", ""}},
  };
  for (const auto& [variant, expected] : wanted) {
    INFO(variant);
    const Json& row = rows.at(variant);
    INFO(row.dump(1));
    const bool measured = expected.first == "measured";
    if (measured) CHECK(was_measured(row));
    if (!measured) CHECK(row.at("status") == expected.first);
    CHECK(reason_of(row).find(expected.second) != std::string::npos);
    CHECK(row.at("timing").is_null() != measured);
    CHECK(row.at("rates").is_null() != measured);
    if (!measured) CHECK(row.at("speedup").is_null());
    if (row.at("status") == "ok" && rows.at("cpu.right").at("status") == "ok") CHECK(row.at("speedup").is_number());
    if (!measured) CHECK_FALSE(reason_of(row).empty());
    if (measured) CHECK(row.at("check").at("repeated_after_timing") == true);
    CHECK(result.out.find(variant) != std::string::npos);  // the table hides no row
    CHECK(result.err.find(variant) != std::string::npos);  // nor do the plain progress lines
  }
  CHECK_FALSE(std::filesystem::exists(output + "l"));
}

TEST_CASE("run: without a fault the exit code is 0, unsupported rows included", "[run]") {
  const ScratchFolder folder;
  const ChildResult result = run_in_child(copy_sweep({{"cpu.right"}, {"cpu.choosy"}}), {.output = folder / "r.json"});
  INFO(result.err);
  CHECK(result.ended_well());
}

TEST_CASE("run: a worker is reused from row to row, and replaced after a crash", "[run][worker]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  run_in_child(copy_sweep({{"cpu.right"}, {"cpu.chatty"}, {"cpu.aborts"}, {"cpu.right"}}), {.output = output});
  const Json rows = read_json(output).at("rows");
  const auto metric = [&](std::size_t row, const char* name) {
    return rows.at(row).at("metrics").at(name).get<double>();
  };
  CHECK(metric(0, "process") == metric(1, "process"));
  CHECK(metric(0, "process") != metric(3, "process"));
  CHECK(metric(1, "expect_calls") == 1);  // two variants of one problem: one reference
}

TEST_CASE("run: a worker killed in any phase is a crash in that phase", "[run][worker]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  // Launch 1 is the check's, 2 the warm-up's (of the first set); measuring begins after at most 64 sets.
  const ChildResult result = run_in_child(copy_sweep({{.variant = "cpu.dies", .dies_at = 0},
                                                      {.variant = "cpu.dies", .dies_at = 1},
                                                      {.variant = "cpu.dies", .dies_at = 2},
                                                      {.variant = "cpu.dies", .dies_at = 66},
                                                      {.variant = "cpu.right"}}),
                                          {.output = output});
  CHECK(result.exit_code == 1);
  const Json rows = read_json(output).at("rows");
  const std::vector<std::string> phases{"prepare", "check", "warm-up", "measure"};
  for (std::size_t i = 0; i < phases.size(); ++i) {
    INFO(rows.at(i).dump(1));
    CHECK(rows.at(i).at("status") == "crashed");
    CHECK(reason_of(rows.at(i)).find("killed by SIGKILL") != std::string::npos);
    CHECK(reason_of(rows.at(i)).find("host memory") != std::string::npos);
    CHECK(reason_of(rows.at(i)).find("in phase " + phases[i]) != std::string::npos);
  }
  CHECK(was_measured(rows.back()));
}

TEST_CASE("run: a hang is killed at the limit and the sweep goes on", "[run][worker]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  Sweep sweep = copy_sweep({{"cpu.endless"}, {"cpu.right"}});
  sweep.limits.row_seconds = 5;
  CHECK(run_in_child(sweep, {.output = output}).exit_code == 1);
  const Json rows = read_json(output).at("rows");
  CHECK(rows.at(0).at("status") == "timed_out");
  CHECK(reason_of(rows.at(0)) == "no result within limits.row_seconds = 5 s; killed in phase check");
  CHECK(was_measured(rows.at(1)));
}

TEST_CASE("run: a row that is stopped with its run, as by Ctrl-Z, may go on afterwards", "[run][worker]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  Sweep sweep = copy_sweep({{"cpu.right"}, {.variant = "cpu.right", .n = 100, .sleep_ms = 100}});
  sweep.limits.row_seconds = 5;
  const auto stopped = std::chrono::seconds(6);  // longer than a row may take
  ChildRun run(sweep, {.output = output});
  ChildRun::wait_until([&] { return !journal_rows(output + "l").empty(); });
  const pid_t worker = run.worker();
  for (const pid_t process : {run.pid(), worker}) kill(process, SIGSTOP);
  std::this_thread::sleep_for(stopped);
  for (const pid_t process : {worker, run.pid()}) kill(process, SIGCONT);
  CHECK(run.wait().ended_well());
  CHECK(was_measured(read_json(output).at("rows").at(1)));
}

TEST_CASE("run: a metric that is not finite is null and the row says so", "[run][json]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  CHECK(run_in_child(copy_sweep({{.not_finite = true}}), {.output = output}).ended_well());
  const Json row = read_json(output).at("rows").at(0);
  CHECK(row.at("metrics").at("idle_ratio").is_null());
  CHECK(row.at("metrics").at("copies_per_s").is_null());
  for (const char* metric : {"metrics.idle_ratio", "metrics.copies_per_s"})
    CHECK_THAT(reason_of(row), contains_text(std::string(metric) + " was not a finite number"));
}

TEST_CASE("run: --in-process measures without a worker", "[run]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  // Not in a forked child: libgomp's threads do not survive a fork.
  CHECK(run_sweep(copy_sweep({{"cpu.right"}, {"cpu.throws"}, {"cpu.right"}}),
                  {.output = output, .in_process = true, .quiet = true}) == 1);
  const Json rows = read_json(output).at("rows");
  CHECK(rows.at(0).at("metrics").at("process") == static_cast<double>(getpid()));
  CHECK(rows.at(1).at("status") == "error");
  CHECK(was_measured(rows.at(2)));
}

TEST_CASE("run: a worker that cannot start ends the run and leaves the old results alone", "[run][worker]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  const std::string old = older_results(1);
  write_text(output, old);
  const ChildResult result = run_in_child(copy_sweep({{"cpu.right"}, {"cpu.chatty"}}), {.output = output},
                                          [] { setenv(kDieAtStart, "1", 1); });
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("no worker process came up, twice: worker process killed by SIGABRT in phase start") !=
        std::string::npos);
  CHECK(result.out.find("crashed") != std::string::npos);
  CHECK(result.err.find(output + " is left as it is") != std::string::npos);
  CHECK(read_text(output) == old);
  CHECK_FALSE(std::filesystem::exists(output + "l"));

  const std::string fresh = folder / "fresh.json";
  const ChildResult first =
      run_in_child(copy_sweep({{"cpu.right"}}), {.output = fresh}, [] { setenv(kDieAtStart, "1", 1); });
  INFO(first.err);
  CHECK(first.err.find("nothing was measured; " + fresh + " is not written") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(fresh));
}
