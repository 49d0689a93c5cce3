#include "harness/results/results_file.hpp"

#include "tests/harness/results/sample_record.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using inferometer::test::sample_record;

namespace {

Record timed(const std::string& id, double ns) {
  Record record = sample_record();
  record.id = id;
  Timing& timing = *record.timing;
  timing.headline_ns = timing.isolated.median_ns = ns;
  timing.isolated.ci_low_ns = 0.9 * ns;
  timing.isolated.ci_high_ns = 1.2 * ns;
  return record;
}

}  // namespace

TEST_CASE("speedup: baseline over row, with the widest interval of both", "[results][speedup]") {
  const auto found = speedup(timed("a", 100), timed("b", 300));
  REQUIRE(found);
  REQUIRE(found->interval);
  CHECK(found->ratio == Approx(3));
  CHECK(found->interval->low == Approx(270.0 / 120.0));  // baseline at its fastest, row at its slowest
  CHECK(found->interval->high == Approx(360.0 / 90.0));
}

TEST_CASE("speedup: an amortized headline is compared with the other row's amortized time", "[results][speedup]") {
  Record row = timed("a", 100);
  row.timing->headline = "amortized";
  row.timing->headline_ns = 50;
  row.timing->amortized = AmortizedTiming{.launches = 10, .mean_ns = 50, .input_sets = 1};
  Record baseline = timed("b", 300);
  baseline.timing->headline = "isolated";
  baseline.timing->amortized = AmortizedTiming{.launches = 10, .mean_ns = 280, .input_sets = 1};
  const auto found = speedup(row, baseline);
  REQUIRE(found);
  REQUIRE(found->interval);
  CHECK(found->ratio == Approx(280.0 / 50));
  CHECK(found->interval->low == Approx(280.0 / 50 * 0.9 / 1.2));  // the interval is the isolated one's, relative

  SECTION("and isolated with isolated where one of them has no other") {
    baseline.timing->amortized.reset();
    CHECK(speedup(row, baseline)->ratio == Approx(300.0 / 100));
  }
}

TEST_CASE("speedup: a median without an interval leaves the ratio, and no interval of it", "[results][speedup]") {
  Record once = timed("a", 100);
  once.timing->isolated.ci_low_ns = once.timing->isolated.ci_high_ns = std::nullopt;
  for (const auto& [row, baseline] : {std::pair(once, timed("b", 300)), std::pair(timed("b", 100), once)}) {
    const auto found = speedup(row, baseline);
    REQUIRE(found);
    CHECK_FALSE(found->interval);
    CHECK(found->ratio == Approx(baseline.timing->headline_ns / row.timing->headline_ns));
  }
}

TEST_CASE("speedup: the baseline itself is exactly 1", "[results][speedup]") {
  const auto found = speedup(timed("a", 100), timed("a", 100));
  REQUIRE(found);
  REQUIRE(found->interval);
  CHECK(found->ratio == 1);
  CHECK(found->interval->low == 1);
  CHECK(found->interval->high == 1);
}

TEST_CASE("speedup: none where either row is suspect, failed or absent", "[results][speedup]") {
  Record suspect = timed("a", 100);
  suspect.status = Status::suspect;
  CHECK_FALSE(speedup(suspect, timed("b", 300)));
  CHECK_FALSE(speedup(timed("b", 300), suspect));
  Record failed = timed("c", 1);
  failed.status = Status::incorrect;
  failed.timing.reset();
  CHECK_FALSE(speedup(failed, timed("b", 300)));
  SweepRow row;
  row.id = "a";
  row.baseline_id = "b";
  CHECK_FALSE(speedup_in({{"a", timed("a", 100)}}, row));
  CHECK(speedup_in({{"a", timed("a", 100)}, {"b", timed("b", 100)}}, row));
  row.baseline_id = "";
  CHECK_FALSE(speedup_in({{"a", timed("a", 100)}, {"b", timed("b", 100)}}, row));
}
