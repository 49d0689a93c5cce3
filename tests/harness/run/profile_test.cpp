#include "harness/run/profile.hpp"

#include <algorithm>

#include "harness/run/ncu_log.hpp"
#include "harness/run/row_runner.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/test_copy.hpp"

using namespace inferometer;

namespace {

Sweep sweep_of(const std::string& variant) {
  Sweep sweep;
  sweep.rows.push_back({.id = "0123456789ab",
                        .operator_name = "test_copy",
                        .variant = variant,
                        .problem = {{"n", std::int64_t{64}}},
                        .baseline_id = ""});
  return sweep;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("profile: a row is checked twice and launched as often as asked, without a timing", "[run][profile]") {
  ProfileOptions options;
  // cpu.wrong_later is right for 10 calls: two checks and one warm-up leave seven in between.
  options.launches = 7;
  const Record right = profile_row(sweep_of("cpu.wrong_later"), options);
  CHECK(right.reason == "");
  CHECK(right.status == Status::ok);
  CHECK_FALSE(right.timing);
  CHECK(right.check->repeated_after_timing);
  options.launches = 8;
  CHECK(profile_row(sweep_of("cpu.wrong_later"), options).status == Status::incorrect);
}

TEST_CASE("profile: a row that fails says why", "[run][profile]") {
  const Record record = profile_row(sweep_of("cpu.throws"), {});
  CHECK(record.status == Status::error);
  CHECK_THAT(record.reason, test::contains_text("the tile is too wide"));
}

TEST_CASE("profile: nsys is bounded by the profiler calls of a GPU row, by the range of a CPU row", "[run][profile]") {
  const std::vector<std::string> program{"inferometer", "profile", "a.json", "--row", "0123"};
  const auto gpu = tool_command(ProfileTool::nsys, sweep_of("cuda.right").rows.front(), "out/a", program);
  CHECK(gpu.front() == "nsys");
  CHECK(has(gpu, "--capture-range=cudaProfilerApi"));
  CHECK(has(gpu, "--output=out/a"));
  CHECK(std::equal(program.rbegin(), program.rend(), gpu.rbegin()));
  const auto cpu = tool_command(ProfileTool::nsys, sweep_of("cpu.right").rows.front(), "out/a", program);
  CHECK(has(cpu, "--nvtx-capture=measure@inferometer"));
  CHECK_FALSE(has(cpu, "--capture-range=cudaProfilerApi"));
}

TEST_CASE("profile: ncu selects the measured range, and refuses rows of the processors", "[run][profile]") {
  const auto gpu = tool_command(ProfileTool::ncu, sweep_of("cuda.right").rows.front(), "out/a", {"inferometer"});
  CHECK(has(gpu, "--nvtx-include=inferometer@measure/"));
  CHECK(has(gpu, "--profile-from-start=off"));
  CHECK_THROWS_WITH(tool_command(ProfileTool::ncu, sweep_of("cpu.right").rows.front(), "out/a", {}),
                    test::contains_text("take --tool nsys"));
}

TEST_CASE("profile: ncu counts what is timed: caches as the row's, clocks as they are", "[run][profile]") {
  const SweepRow row = sweep_of("cuda.right").rows.front();
  const auto cold = counting_command(row, CacheMode::cold, "out/a.csv", {"inferometer"});
  CHECK(cold.front() == "ncu");
  CHECK(cold.back() == "inferometer");
  for (const char* word : {"--csv", "--page=raw", "--print-units=base", "--cache-control=all", "--clock-control=none",
                           "--nvtx-include=inferometer@measure/", "--log-file=out/a.csv"})
    CHECK(has(cold, word));
  CHECK(has(cold, "--metrics=" + ncu_metric_names()));
  CHECK(has(counting_command(row, CacheMode::warm, "out/a.csv", {}), "--cache-control=none"));
  CHECK_THROWS_WITH(counting_command(sweep_of("cpu.right").rows.front(), CacheMode::cold, "a", {}),
                    test::contains_text("take --tool nsys"));
}
