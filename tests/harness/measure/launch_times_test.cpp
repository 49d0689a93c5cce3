#include "harness/measure/launch_times.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

// Two launches of three kernels each; before each of them the cache is cleared. Launch 0 takes from 1000 to 1900,
// launch 1 from 5000 to 5800.
TraceRecords two_launches() {
  return {.activities = {{.call = 1, .start_ns = 100, .end_ns = 990, .name = "read_kernel"},
                         {.call = 2, .start_ns = 1000, .end_ns = 1200, .name = "split"},
                         {.call = 3, .start_ns = 1250, .end_ns = 1650, .name = "split"},
                         {.call = 4, .start_ns = 1700, .end_ns = 1900, .name = "combine"},
                         {.call = 5, .start_ns = 4000, .end_ns = 4990, .name = "read_kernel"},
                         {.call = 6, .start_ns = 5000, .end_ns = 5200, .name = "split"},
                         {.call = 7, .start_ns = 5250, .end_ns = 5450, .name = "split"},
                         {.call = 8, .start_ns = 5500, .end_ns = 5800, .name = "combine"}},
          .calls = {{.call = 2, .launch = 0},
                    {.call = 3, .launch = 0},
                    {.call = 4, .launch = 0},
                    {.call = 6, .launch = 1},
                    {.call = 7, .launch = 1},
                    {.call = 8, .launch = 1},
                    {.call = 9, .launch = 1}},  // of a call that queued nothing
          .dropped = 0};
}

}  // namespace

TEST_CASE("launch times: from the first kernel's beginning to the last one's end, without what clears the cache",
          "[measure][profiler]") {
  const LaunchTimes times = launch_times(two_launches(), 2);
  CHECK(times.launch_ns == std::vector<double>{900, 800});
  REQUIRE(times.kernels.size() == 2);
  CHECK(times.kernels[0].name == "split");
  CHECK(times.kernels[0].count == 2);
  CHECK(times.kernels[0].mean_ns == 250);  // 200, 400, 200, 200
  CHECK(times.kernels[1].name == "combine");
  CHECK(times.kernels[1].count == 1);
  CHECK(times.kernels[1].mean_ns == 250);
}

TEST_CASE("launch times: the order of the records is of no matter", "[measure][profiler]") {
  TraceRecords records = two_launches();
  std::reverse(records.activities.begin(), records.activities.end());
  std::rotate(records.activities.begin(), records.activities.begin() + 3, records.activities.end());
  std::reverse(records.calls.begin(), records.calls.end());
  const LaunchTimes times = launch_times(records, 2);
  CHECK(times.launch_ns == std::vector<double>{900, 800});
  CHECK(times.kernels.front().name == "split");
}

TEST_CASE("launch times: kernels that overlap are not counted twice, and the longest need not be the last",
          "[measure][profiler]") {
  TraceRecords records = two_launches();
  records.activities[1].end_ns = 2500;    // the first of launch 0 ends after all others
  records.activities[7].start_ns = 4995;  // the last queued of launch 1 begins first
  CHECK(launch_times(records, 2).launch_ns == std::vector<double>{1500, 805});
}

TEST_CASE("launch times: kernels of a graph have one call between them", "[measure][profiler]") {
  TraceRecords records = two_launches();
  for (std::size_t i : {2, 3}) records.activities[i].call = 2;
  for (std::size_t i : {6, 7}) records.activities[i].call = 6;
  CHECK(launch_times(records, 2).launch_ns == std::vector<double>{900, 800});
}

TEST_CASE("launch times: what is missing leaves no time behind", "[measure][profiler]") {
  TraceRecords records = two_launches();
  SECTION("the profiler says so") {
    records.dropped = 3;
    CHECK_THROWS_WITH(launch_times(records, 2), "the profiler dropped 3 records");
  }
  SECTION("a kernel of one launch") {
    records.activities.pop_back();
    CHECK_THROWS_WITH(launch_times(records, 2), "the profiler recorded 3 kernels of one launch and 2 of another");
  }
  SECTION("which call it was that queued a kernel") {
    records.calls.erase(records.calls.begin());
    CHECK_THROWS_AS(launch_times(records, 2), ProfilerError);
  }
  SECTION("all kernels of a launch") {
    CHECK_THROWS_WITH(launch_times(records, 3), "the profiler recorded no kernel of a launch");
  }
  SECTION("when a kernel began") {
    records.activities[2].start_ns = 0;
    CHECK_THROWS_WITH(launch_times(records, 2), "the profiler recorded a kernel without its times");
  }
  SECTION("when a kernel ended") {
    records.activities[2].end_ns = 0;
    CHECK_THROWS_WITH(launch_times(records, 2), "the profiler recorded a kernel without its times");
  }
}

TEST_CASE("launch times: missing times of what is no part of a launch do not matter", "[measure][profiler]") {
  TraceRecords records = two_launches();
  records.activities[0].start_ns = 0;
  CHECK(launch_times(records, 2).launch_ns == std::vector<double>{900, 800});
}

TEST_CASE("launch times: a kernel's name without namespaces, template arguments and parameters",
          "[measure][profiler]") {
  CHECK(kernel_name("_ZN11inferometer12_GLOBAL__N_112flash_kernelILi128EEEvPKv") == "flash_kernel");
  CHECK(kernel_name("_ZN11inferometer12empty_kernelEv") == "empty_kernel");
  CHECK(kernel_name("_Z3addPfi") == "add");
  CHECK(kernel_name("nvjet_sm90_hss_128x128_64x6_1x2_h_bz_NNN") == "nvjet_sm90_hss_128x128_64x6_1x2_h_bz_NNN");
  CHECK(kernel_name("") == "");
}
