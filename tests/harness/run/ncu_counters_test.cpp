#include "harness/run/ncu_counters.hpp"

#include "harness/results/build_info.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

KernelCounters kernel(double time_ns, double dram_bytes, double tensor_pipe_ratio, double occupancy_ratio) {
  return {.kernel = "split",
          .sm = 90,
          .time_ns = time_ns,
          .dram_bytes = dram_bytes,
          .tensor_pipe_ratio = tensor_pipe_ratio,
          .occupancy_ratio = occupancy_ratio};
}

Json results_with(const std::string& status) {
  const Json row = {{"id", "0123456789ab"}, {"status", status}, {"metrics", {{"quantization_rel_error", 0.1}}}};
  return {{"schema", "inferometer.results/1"},
          {"environment", {{"program", {{"kernels_sha256", build_info().kernels_sha256}}}, {"gpu", {{"sm", 90}}}}},
          {"rows", Json::array({row})}};
}

}  // namespace

TEST_CASE("ncu counters: sums and time-weighted shares of one launch", "[run][profile]") {
  // Two launches of two kernels each.
  const auto metrics = counter_metrics(
      {kernel(3000, 400, 0.5, 1), kernel(1000, 200, 0.1, 0.2), kernel(3000, 500, 0.5, 1), kernel(1000, 300, 0.1, 0.2)},
      2);
  REQUIRE(metrics.size() == 5);
  const auto is = [&](std::size_t at, const std::string& name, double value) {
    CHECK(metrics[at].name == name);
    CHECK(metrics[at].value == Approx(value));
  };
  is(0, "ncu_kernels", 2);
  is(1, "ncu_time_ns", 4000);
  is(2, "ncu_dram_bytes", 700);
  is(3, "ncu_tensor_pipe_ratio", 0.4);
  is(4, "ncu_occupancy_ratio", 0.8);
}

TEST_CASE("ncu counters: kernels that are no whole launches, and none, are refused", "[run][profile]") {
  CHECK_THROWS_WITH(counter_metrics({kernel(1, 1, 0, 0), kernel(1, 1, 0, 0), kernel(1, 1, 0, 0)}, 2),
                    test::contains_text("ncu counted 3 kernels in 2 launches"));
  CHECK_THROWS_WITH(counter_metrics({}, 2), test::contains_text("ncu counted 0 kernels"));
  CHECK_THROWS_WITH(counter_metrics({kernel(0, 1, 0, 0)}, 1), test::contains_text("no time"));
}

TEST_CASE("ncu counters: they stand beside the row's own metrics, in place of earlier ones", "[run][profile]") {
  Json results = results_with("ok");
  for (const double bytes : {1.0, 2.0})
    set_metrics(row_for_counters(results, "0123456789ab", "a.json"), {{"ncu_dram_bytes", bytes}});
  CHECK(results.at("rows")[0].at("metrics") == Json({{"quantization_rel_error", 0.1}, {"ncu_dram_bytes", 2.0}}));
}

TEST_CASE("ncu counters: a file that cannot have them is refused", "[run][profile]") {
  const auto refused = [](Json results, const std::string& sentence, const std::string& id = "0123456789ab") {
    CHECK_THROWS_WITH(row_for_counters(results, id, "a.json"), test::contains_text(sentence));
  };
  refused(Json::array(), "a.json is no results file");
  refused({{"schema", "inferometer.results/2"}, {"rows", Json::array()}}, "a.json is no results file");
  refused({{"schema", "inferometer.results/1"}, {"rows", 7}}, "a.json has no list of rows");
  refused(results_with("ok"), "a.json has no row ffff", "ffff");
  refused(results_with("incorrect"), "row 0123456789ab has no time that counters could be set beside: it is incorrect");
  Json older = results_with("ok");
  older["environment"]["program"]["kernels_sha256"] = "another";
  refused(older, "a.json was measured with other kernels than this program's");
  Json odd = results_with("ok");
  odd["rows"].insert(odd["rows"].begin(), 7);  // what is no row is passed over
  CHECK(row_for_counters(odd, "0123456789ab", "a.json").at("status") == "ok");
}

TEST_CASE("ncu counters: those of another architecture are refused", "[run][profile]") {
  const Json results = results_with("ok");
  CHECK_NOTHROW(require_same_sm(results, {kernel(1, 1, 0, 0)}));
  KernelCounters other = kernel(1, 1, 0, 0);
  other.sm = 80;
  CHECK_THROWS_WITH(require_same_sm(results, {kernel(1, 1, 0, 0), other}),
                    test::contains_text("measured on sm_90, ncu counted on sm_80"));
}
