#include "harness/results/compare.hpp"

#include <algorithm>

#include "harness/results/compare_text.hpp"
#include "harness/results/markdown_text.hpp"
#include "harness/results/record_json.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/harness/run/child_run.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using inferometer::test::sample_record;

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// `width`: of the median's confidence interval to either side, as a share of the median.
Record timed(std::int64_t batch, double ns, double width = 0.005) {
  Record record = sample_record();
  record.id = "row" + std::to_string(batch);
  record.problem = {{"batch", batch}};
  record.timing->headline_ns = ns;
  record.timing->isolated.median_ns = ns;
  record.timing->isolated.ci_low_ns = ns * (1 - width);
  record.timing->isolated.ci_high_ns = ns * (1 + width);
  record.timing->amortized.reset();
  return record;
}

Record failing(std::int64_t batch, Status status) {
  Record record = timed(batch, 1);
  record.status = status;
  record.reason = "row " + std::to_string(batch) + " went wrong";
  record.timing.reset();
  record.rates.reset();
  record.check.reset();
  return record;
}

Json results(const std::vector<Record>& records, double noise = 0) {
  Json json = {{"schema", "inferometer.results/1"},
               {"environment",
                {{"host", {{"cpu_model", "some CPU"}, {"threads_used", 2}}},
                 {"gpu", {{"name", "some GPU"}, {"max_sm_mhz", 1980}, {"power_limit_w", 700.0}}},
                 {"noise", {{"repeat_ratio", noise}}}}},
               {"rows", Json::array()}};
  for (const Record& record : records) json["rows"].push_back(record_json(record));
  return json;
}

// Medians of launches at a clock; in a row where `in_a_row` is not 0.
Record at_clock(double ns, double mhz, double in_a_row = 0, std::vector<std::string> flags = {}) {
  Record record = timed(1, ns);
  record.timing->isolated.sm_mhz_median = mhz;
  record.timing->isolated.flags = std::move(flags);
  if (in_a_row > 0) record.timing->amortized = AmortizedTiming{.launches = 100, .mean_ns = in_a_row, .input_sets = 4};
  return record;
}

Verdict one_verdict(const Record& base, const Record& now, double noise = 0) {
  const Comparison comparison = compare_results(results({base}, noise), results({now}), 0.05);
  REQUIRE(comparison.rows.size() == 1);
  return comparison.rows.front().verdict;
}

}  // namespace

TEST_CASE("compare: a row is slower or faster once its whole interval is past the threshold", "[results][compare]") {
  CHECK(one_verdict(timed(1, 100), timed(1, 110)) == Verdict::slower);
  CHECK(one_verdict(timed(1, 110), timed(1, 100)) == Verdict::faster);
  CHECK(one_verdict(timed(1, 100), timed(1, 101)) == Verdict::same);
  CHECK(one_verdict(timed(1, 100), timed(1, 105.2)) == Verdict::noisy);
  CHECK(one_verdict(timed(1, 100, 0.2), timed(1, 110, 0.2)) == Verdict::noisy);
}

TEST_CASE("compare: the noise floor of either file widens every interval", "[results][compare]") {
  CHECK(one_verdict(timed(1, 100), timed(1, 108), 0.0) == Verdict::slower);
  CHECK(one_verdict(timed(1, 100), timed(1, 108), 0.04) == Verdict::noisy);
}

TEST_CASE("compare: the interval of the ratio is that of independent medians", "[results][compare]") {
  const Comparison comparison = compare_results(results({timed(1, 100, 0.03)}), results({timed(1, 200, 0.04)}), 0.05);
  const ComparedRow& row = comparison.rows.at(0);
  REQUIRE(row.ratio);
  CHECK(*row.ratio == Approx(2.0));
  // Half widths of 3 % and 4 % make one of 5 %.
  CHECK(*row.ratio_low == Approx(2.0 / 1.05).epsilon(0.002));
  CHECK(*row.ratio_high == Approx(2.0 * 1.05).epsilon(0.002));
}

TEST_CASE("compare: below six samples nothing can be told", "[results][compare]") {
  Record few = timed(1, 300);
  few.timing->isolated.ci_low_ns.reset();
  few.timing->isolated.ci_high_ns.reset();
  few.timing->isolated.samples = 3;
  CHECK(one_verdict(timed(1, 100), few) == Verdict::noisy);
  const auto text = [](const Record& base, const Record& now) {
    return comparison_text(compare_results(results({base}), results({now}), 0.05), {});
  };
  CHECK(contains(text(timed(1, 100), few), "  the new row has 3 samples, too few for an interval\n"));
  CHECK(contains(text(few, timed(1, 100)), "  the base row has 3 samples, too few for an interval\n"));
  CHECK_FALSE(contains(text(timed(1, 100, 0.2), timed(1, 110, 0.2)), "too few"));
}

TEST_CASE("compare: a row of which one time is suspect is noisy and says so", "[results][compare]") {
  Record suspect = timed(1, 100);
  suspect.status = Status::suspect;
  suspect.reason = "faster than memory";
  const auto text = [](const Record& base, const Record& now) {
    return comparison_text(compare_results(results({base}), results({now}), 0.05), {});
  };
  CHECK(contains(text(suspect, timed(1, 100)), "the base row is suspect: faster than memory"));
  CHECK(contains(text(suspect, timed(1, 200)), "the base row is suspect: faster than memory"));
  CHECK(contains(text(timed(1, 200), suspect), "the new row is suspect: faster than memory"));
  CHECK_FALSE(contains(text(timed(1, 100), timed(1, 200)), "suspect"));
  for (const double other : {50.0, 100.0, 200.0}) {
    CHECK(one_verdict(suspect, timed(1, other)) == Verdict::noisy);
    CHECK(one_verdict(timed(1, other), suspect) == Verdict::noisy);
  }
  CHECK(exit_code(compare_results(results({timed(1, 50)}), results({suspect}), 0.05)) == 0);
}

TEST_CASE("compare: a row that was interrupted says so beside its verdict, and doctor is named", "[results][compare]") {
  const auto text = [](const Record& base, const Record& now, bool markdown = false) {
    return comparison_text(compare_results(results({base}), results({now}), 0.05), {.markdown = markdown});
  };
  Record disturbed = timed(1, 100);
  disturbed.timing->isolated.flags = {"interrupted"};
  const std::string advice =
      "Other programs interrupted 1 row: 'inferometer doctor' says what disturbs this machine; measure again once it "
      "is idle.\n";
  CHECK(one_verdict(disturbed, timed(1, 200)) == Verdict::slower);
  CHECK(contains(text(disturbed, timed(1, 200)), "the base row was interrupted by other programs"));
  CHECK(contains(text(timed(1, 100), disturbed), "the new row was interrupted by other programs"));
  CHECK(text(timed(1, 100), disturbed).ends_with("1 same\n" + advice));
  CHECK(text(timed(1, 100), disturbed, true).ends_with("1 same\n\n" + advice));
  CHECK_FALSE(contains(text(timed(1, 100), timed(1, 200)), "doctor"));
}

TEST_CASE("compare: the commits that measured are named, and kernels that differ", "[results][compare]") {
  Json base = results({timed(1, 100)});
  Json now = base;
  CHECK_FALSE(contains(comparison_text(compare_results(base, now, 0.05), {}), "commit"));
  base["environment"]["program"] = {
      {"git_commit", "0123456789ab"}, {"git_dirty", false}, {"kernels_sha256", "aaaaaaaaaaaabbbb"}};
  now["environment"]["program"] = {
      {"git_commit", "ba9876543210"}, {"git_dirty", true}, {"kernels_sha256", "aaaaaaaaaaaabbbb"}};
  CHECK(contains(comparison_text(compare_results(base, now, 0.05), {}),
                 "Base: commit 0123456789; new: commit ba98765432 with changes.\n"));
  now["environment"]["program"]["kernels_sha256"] = "ccccccccccccdddd";
  CHECK(contains(comparison_text(compare_results(base, now, 0.05), {}),
                 "with changes; their kernels differ: kernels_sha256 aaaaaaaaaaaa and cccccccccccc.\n"));
}

TEST_CASE("compare: ten rows against seven of which one failed: each is named, exit code 3", "[results][compare]") {
  std::vector<Record> base;
  std::vector<Record> now;
  for (int i = 0; i < 10; ++i) base.push_back(timed(i, 100));
  for (int i = 0; i < 6; ++i) now.push_back(timed(i, 100));
  now.push_back(failing(6, Status::crashed));
  const Comparison comparison = compare_results(results(base), results(now), 0.05);
  CHECK(exit_code(comparison) == 3);
  const std::string text = comparison_text(comparison, {});
  CHECK(contains(text, "failed"));
  CHECK(contains(text, "row 6 went wrong"));
  for (const char* missing : {"batch 7", "batch 8", "batch 9"}) CHECK(contains(text, missing));
  CHECK(contains(text, "1 failed, 3 missing, 6 same"));
}

TEST_CASE("compare: only improvements are exit code 0, one regression is 1", "[results][compare]") {
  CHECK(exit_code(
            compare_results(results({timed(1, 100), timed(2, 50)}), results({timed(1, 80), timed(2, 50)}), 0.05)) == 0);
  CHECK(exit_code(
            compare_results(results({timed(1, 100), timed(2, 50)}), results({timed(1, 80), timed(2, 60)}), 0.05)) == 1);
  CHECK(exit_code(compare_results(results({timed(1, 100)}), results({timed(1, 100), timed(2, 1)}), 0.05)) == 3);
}

TEST_CASE("compare: another GPU, other clocks or another cache are not comparable, and no ratio is shown",
          "[results][compare]") {
  const Json base = results({timed(1, 100)});
  Json other = results({timed(1, 150)});
  other["environment"]["gpu"]["name"] = "another GPU";
  CHECK(exit_code(compare_results(base, other, 0.05)) == 4);
  CHECK(contains(comparison_text(compare_results(base, other, 0.05), {}), "another GPU"));

  Json slow_clock = results({timed(1, 150)});
  slow_clock["environment"]["gpu"]["max_sm_mhz"] = 1200;
  CHECK(exit_code(compare_results(base, slow_clock, 0.05)) == 4);

  Record warm = timed(1, 50);
  warm.timing->isolated.cache = CacheMode::warm;
  const Comparison cache = compare_results(base, results({warm}), 0.05);
  CHECK(exit_code(cache) == 4);
  CHECK_FALSE(cache.rows.at(0).ratio);
}

TEST_CASE("compare: another CPU matters to rows that ran on it only", "[results][compare]") {
  Record on_cpu = timed(2, 100);
  on_cpu.backend = "cpu";
  for (const Json& difference : {Json{{"cpu_model", "another CPU"}, {"threads_used", 2}},
                                 Json{{"cpu_model", "some CPU"}, {"threads_used", 32}}}) {
    const auto compared = [&](const std::vector<Record>& base, const std::vector<Record>& rows) {
      Json now = results(rows);
      now["environment"]["host"] = difference;
      return compare_results(results(base), now, 0.05);
    };
    INFO(difference.dump());
    CHECK(exit_code(compared({timed(1, 100)}, {timed(1, 100)})) == 0);
    CHECK(exit_code(compared({on_cpu}, {on_cpu})) == 4);

    Record slower_on_cpu = on_cpu;
    slower_on_cpu.timing = timed(2, 200).timing;
    const Comparison both = compared({timed(1, 100), on_cpu}, {timed(1, 100), slower_on_cpu});
    CHECK(both.obstacles.empty());
    REQUIRE(both.rows.size() == 2);
    CHECK(both.rows[0].verdict == Verdict::same);
    CHECK(both.rows[1].verdict == Verdict::other_host);
    CHECK_FALSE(both.rows[1].ratio);
    CHECK(exit_code(both) == 3);  // not 0: half of the rows tell nothing
    const std::string text = comparison_text(both, {});
    CHECK(contains(text, "Rows on the CPU are not compared: "));
    CHECK(contains(text, "1 other host, 1 same"));
    CHECK(exit_code(compared({timed(1, 100), on_cpu}, {timed(1, 120), on_cpu})) == 1);
  }
}

TEST_CASE("compare: a GPU of another kind is another device, one of the same kind in another machine is not",
          "[results][compare]") {
  const auto code = [](const char* member, const Json& base_value, const Json& now_value) {
    Json base = results({timed(1, 100)});
    Json now = results({timed(1, 100)});
    base["environment"]["gpu"][member] = base_value;
    now["environment"]["gpu"][member] = now_value;
    return exit_code(compare_results(base, now, 0.05));
  };
  CHECK(code("uuid", "GPU-1", "GPU-2") == 0);
  CHECK(code("driver", "580.1", "580.2") == 0);
  CHECK(code("sm", 90, 100) == 4);
  CHECK(code("sm_count", 132, 114) == 4);
  CHECK(code("memory_bytes", 150'109'880'320, 75'054'940'160) == 4);
  CHECK(code("memory_bytes", 150'109'880'320, 150'000'000'000) == 0);  // what a driver keeps for itself
  CHECK(code("memory_bytes", 150'109'880'320, nullptr) == 4);
}

TEST_CASE("compare: published files of one kind of GPU in machines of unlike threads are comparable",
          "[results][compare]") {
  const std::string folder = INFEROMETER_SOURCE_DIR "/results/";
  const Comparison comparison =
      compare_results(Json::parse(test::read_text(folder + "h200/attention_prefill.json")),
                      Json::parse(test::read_text(folder + "h200-x2/attention_prefill.json")), 0.05);
  CHECK(comparison.obstacles.empty());
  CHECK(exit_code(comparison) != 4);
  const auto compared = std::count_if(comparison.rows.begin(), comparison.rows.end(), [](const ComparedRow& row) {
    return row.base && row.base->backend == "cuda" && row.ratio.has_value();
  });
  CHECK(compared == 168);  // three variants, 56 problems
}

TEST_CASE("compare: a field that came with a later version has its default in older files", "[results][compare]") {
  Record old = timed(1, 100);
  Record now = timed(1, 100);
  now.problem.emplace_back("soft_cap", 0.0);
  const Comparison same = compare_results(results({old}), results({now}), 0.05);
  REQUIRE(same.rows.size() == 1);
  CHECK(same.rows.front().verdict == Verdict::same);
  now.problem.back().second = 30.0;
  CHECK(exit_code(compare_results(results({old}), results({now}), 0.05)) == 3);
}

TEST_CASE("compare: rows that both files call unsupported are no news", "[results][compare]") {
  const Comparison comparison = compare_results(results({failing(1, Status::unsupported), timed(2, 10)}),
                                                results({failing(1, Status::unsupported), timed(2, 10)}), 0.05);
  CHECK(comparison.rows.size() == 1);
  CHECK(exit_code(comparison) == 0);
}

TEST_CASE("compare: amortised headlines are compared with each other, else the isolated medians",
          "[results][compare]") {
  Record base = timed(1, 100);
  base.timing->headline = "amortized";
  base.timing->amortized = AmortizedTiming{.launches = 100, .mean_ns = 60, .input_sets = 4};
  Record now = base;
  now.timing->amortized->mean_ns = 90;
  ComparedRow row = compare_results(results({base}), results({now}), 0.05).rows.at(0);
  CHECK(row.estimator == "amortized");
  CHECK(*row.ratio == Approx(1.5));
  row = compare_results(results({base}), results({timed(1, 100)}), 0.05).rows.at(0);
  CHECK(row.estimator == "isolated");
  CHECK(*row.ratio == Approx(1.0));
}

TEST_CASE("compare: a difference no larger than that of the clocks is noisy", "[results][compare]") {
  CHECK(one_verdict(at_clock(100, 1960), at_clock(112, 1750)) == Verdict::noisy);
  CHECK(one_verdict(at_clock(112, 1750), at_clock(100, 1960)) == Verdict::noisy);
  CHECK(one_verdict(at_clock(100, 1960), at_clock(112, 1530)) == Verdict::noisy);  // less than the clocks would allow
  CHECK(one_verdict(at_clock(100, 1960), at_clock(115, 1750)) == Verdict::noisy);  // more, within the threshold
  CHECK(one_verdict(at_clock(115, 1750), at_clock(100, 1960)) == Verdict::noisy);
  // Beyond what the clocks explain by more than the threshold, or against it, it is the kernel's.
  CHECK(one_verdict(at_clock(100, 1960), at_clock(120, 1750)) == Verdict::slower);
  CHECK(one_verdict(at_clock(120, 1750), at_clock(100, 1960)) == Verdict::faster);
  CHECK(one_verdict(at_clock(100, 1750), at_clock(112, 1960)) == Verdict::slower);
  CHECK(one_verdict(at_clock(112, 1960), at_clock(100, 1750)) == Verdict::faster);
  CHECK(one_verdict(at_clock(100, 1960), at_clock(112, 1960)) == Verdict::slower);
  // A kernel that does not follow the clock stays the same.
  CHECK(one_verdict(at_clock(100, 1960), at_clock(101, 1750)) == Verdict::same);
}

TEST_CASE("compare: what clocks explain counts if launches in a row differ as well", "[results][compare]") {
  const Record base = at_clock(100, 1960, 100);
  CHECK(one_verdict(base, at_clock(112, 1750, 101)) == Verdict::noisy);
  CHECK(one_verdict(base, at_clock(112, 1750, 104)) == Verdict::noisy);  // within the threshold
  CHECK(one_verdict(base, at_clock(112, 1750, 90)) == Verdict::noisy);   // the other way
  CHECK(one_verdict(base, at_clock(112, 1750, 108)) == Verdict::slower);
  CHECK(one_verdict(at_clock(112, 1750, 108), base) == Verdict::faster);
  CHECK(one_verdict(base, at_clock(112, 1960, 100)) == Verdict::slower);  // no change of clocks: no witness needed
  Record warm = at_clock(112, 1750, 108);
  warm.timing->amortized->cache = CacheMode::warm;
  CHECK(one_verdict(base, warm) == Verdict::noisy);
}

TEST_CASE("compare: at the power limit launches one by one and in a row have to agree", "[results][compare]") {
  const Record base = at_clock(100, 1960, 100);
  const std::vector<std::string> limited{"power_limited"};
  CHECK(one_verdict(base, at_clock(112, 1970, 100, limited)) == Verdict::noisy);
  CHECK(one_verdict(at_clock(112, 1970, 100, limited), base) == Verdict::noisy);
  CHECK(one_verdict(base, at_clock(112, 1970, 94, limited)) == Verdict::noisy);
  CHECK(one_verdict(base, at_clock(112, 1970, 108, limited)) == Verdict::slower);
  CHECK(one_verdict(at_clock(112, 1970, 108, limited), base) == Verdict::faster);
  CHECK(one_verdict(base, at_clock(112, 1970, 0, limited)) == Verdict::slower);  // nothing but these medians
  CHECK(one_verdict(base, at_clock(101, 1970, 120, limited)) == Verdict::same);
}

TEST_CASE("compare: a row whose difference may be the clock's says so, and what to do", "[results][compare]") {
  const auto text = [](const Record& base, const Record& now) {
    return comparison_text(compare_results(results({base}), results({now}), 0.05), {});
  };
  const Record base = at_clock(100, 1960, 100);
  const std::string clocks = text(base, at_clock(112, 1750, 101));
  CHECK(contains(clocks, "  clocks of 1960 and 1750 MHz, in a row 1.010\n"));
  CHECK(
      clocks.ends_with("1 noisy\nThe clock or the power limit may explain 1 noisy row: rest the card before each row "
                       "('rest_seconds'), or measure both kernels in turn ('run --against').\n"));
  CHECK(contains(text(base, at_clock(112, 1750)), "  clocks of 1960 and 1750 MHz, not measured in a row\n"));
  CHECK(contains(text(base, at_clock(112, 1960, 99, {"power_limited"})), "  at the power limit, in a row 0.990\n"));
  CHECK_FALSE(contains(text(base, at_clock(100, 1750, 101)), "clock"));
  CHECK_FALSE(contains(text(base, at_clock(105.2, 1960, 100)), "clock"));  // noisy by its interval
}

TEST_CASE("compare: text that is markup stays text in Markdown", "[results][compare]") {
  Record base = timed(1, 100);
  base.variant = "cpu.<b>|x";
  const std::string text = comparison_text(compare_results(results({base}), results({}), 0.05), {.markdown = true});
  CHECK(contains(text, "| verdict |"));
  CHECK(contains(text, markdown_cell(base.variant)));
  CHECK_FALSE(contains(text, base.variant));
}

TEST_CASE("compare: what is no results file is refused", "[results][compare]") {
  CHECK_THROWS_AS(compare_results(Json::array(), results({}), 0.05), std::runtime_error);
}

TEST_CASE("compare: a reason that several rows share is said once, with how many rows it stands for",
          "[results][compare]") {
  std::vector<Record> before;
  std::vector<Record> after;
  for (std::int64_t batch = 1; batch <= 4; ++batch) {
    before.push_back(timed(batch, 100));
    after.push_back(failing(batch, Status::crashed));
    after.back().reason = batch == 4 ? "it hung" : "no GPU was there";
  }
  const Comparison comparison = compare_results(results(before), results(after), 0.05);
  const std::string text = comparison_text(comparison, {});
  INFO(text);
  CHECK(contains(text, "\n(1) no GPU was there (3 rows)\n"));
  CHECK(text.find("no GPU was there") == text.rfind("no GPU was there"));
  CHECK(contains(text, "it hung"));
  CHECK_FALSE(contains(text, "(2)"));
  CHECK(contains(comparison_text(comparison, {.markdown = true}), "no GPU was there (3 rows)\n\n4 failed"));
}
