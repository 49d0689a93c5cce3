#include "harness/results/against.hpp"

#include "harness/results/record_json.hpp"
#include "harness/run/abba_executor.hpp"
#include "harness/run/row_record.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

Record timed(const SweepRow& row, double ns, double width = 0.01) {
  Record record = sample_record();
  record.id = row.id;
  record.operator_name = row.operator_name;
  record.variant = row.variant;
  record.backend = "cpu";
  record.problem = row.problem;
  record.timing->headline_ns = ns;
  record.timing->isolated.median_ns = ns;
  record.timing->isolated.ci_low_ns = ns * (1 - width);
  record.timing->isolated.ci_high_ns = ns * (1 + width);
  record.timing->amortized.reset();
  return record;
}

Json results_of(const Sweep& sweep, const std::vector<Record>& records) {
  RecordsById by_id;
  for (const Record& record : records) by_id[record.id] = record;
  return results_json(sweep, {.started_at = {}, .finished_at = {}, .argv = {}, .host = {}, .devices = {}}, by_id);
}

// An earlier run: two problems, one variant.
struct Earlier {
  Sweep sweep = copy_sweep({{.variant = "cpu.chatty", .n = 1}, {.variant = "cpu.chatty", .n = 2}});
  Json results = results_of(sweep, {timed(sweep.rows[0], 1000), timed(sweep.rows[1], 1000)});
};

// The same problems with another variant, under ids of their own.
Sweep another_variant() {
  Sweep sweep = copy_sweep({{.n = 1}, {.n = 2}, {.n = 3}});
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) sweep.rows[i].id = "new" + std::to_string(i);
  return sweep;
}

}  // namespace

TEST_CASE("against: rows stand against the earlier file's variant of the same problem", "[results][against]") {
  const Earlier earlier;
  const auto counterparts = rows_to_interleave(another_variant(), earlier.results);
  REQUIRE(counterparts.size() == 2);  // the third problem is new
  CHECK(counterparts.at("new0").variant == "cpu.chatty");
  CHECK(counterparts.at("new0").id == earlier.sweep.rows[0].id);
  CHECK(counterparts.at("new1").problem == earlier.sweep.rows[1].problem);
  CHECK(rows_to_interleave(earlier.sweep, earlier.results).empty());  // rows that it has: nothing to build anew
}

TEST_CASE("against: a file from before a field came has its rows with that field's default", "[results][against]") {
  Earlier earlier;
  for (SweepRow& row : earlier.sweep.rows) row.id = row_id(row.operator_name, row.variant, row.problem);
  const std::vector<Record> measured{timed(earlier.sweep.rows[0], 1000), timed(earlier.sweep.rows[1], 1000)};
  Against against{.path = "base.json", .base = results_of(earlier.sweep, measured), .threshold = 0.05};
  for (Json& row : against.base.at("rows")) {
    row.at("problem").erase("dies_at");
    row["id"] = "before";
  }
  CHECK(rows_to_interleave(earlier.sweep, against.base).empty());
  CHECK(rows_to_interleave(another_variant(), against.base).at("new0").problem == earlier.sweep.rows[0].problem);
  const Comparison comparison = compare_against(against, results_of(earlier.sweep, measured), {});
  REQUIRE(comparison.rows.size() == 2);
  for (const ComparedRow& row : comparison.rows) CHECK(row.verdict == Verdict::same);
}

TEST_CASE("against: of several variants the baseline counts, and none that is not built", "[results][against]") {
  Earlier earlier;
  const SweepRow row = earlier.sweep.rows[0];
  SweepRow other = row;
  other.id = "other";
  other.variant = "cpu.stale";
  earlier.sweep.rows.push_back(other);
  earlier.results = results_of(earlier.sweep, {timed(row, 1000), timed(other, 1000)});
  CHECK_FALSE(rows_to_interleave(another_variant(), earlier.results).contains("new0"));
  earlier.results["config"]["baseline"] = "cpu.stale";
  CHECK(rows_to_interleave(another_variant(), earlier.results).at("new0").variant == "cpu.stale");
  earlier.results["rows"][1]["variant"] = "cpu.removed_since";
  CHECK(rows_to_interleave(another_variant(), earlier.results).at("new0").variant == "cpu.chatty");
}

TEST_CASE("against: two measurements make one, whose interval holds the drift between them", "[results][against]") {
  const SweepRow row = another_variant().rows[0];
  const Record both = combined(timed(row, 1000, 0.01), timed(row, 1100, 0.01));
  const IsolatedTiming& timing = both.timing->isolated;
  CHECK(timing.median_ns == Approx(1050));
  CHECK(both.timing->headline_ns == Approx(1050));
  CHECK(timing.samples == 240);
  // The rates of the second are those of 1100 ns.
  CHECK(*both.rates->flops_per_s == Approx(5e13 * 1100 / 1050));
  CHECK(*both.rates->bytes_per_s == Approx(2e11 * 1100 / 1050));
  CHECK(*both.rates->fraction_of_ceiling == Approx(0.07 * 1100 / 1050));
  // Half the drift is 50; the own errors, 10 and 11, give hypot(20, 22) / 4 = 7.4 for the mean.
  CHECK(*timing.ci_high_ns - timing.median_ns == Approx(std::hypot(50, 7.433)).epsilon(1e-3));
  CHECK(*timing.ci_low_ns < 1000);
  Record slow_clock = timed(row, 1100);
  slow_clock.timing->isolated.sm_mhz_median = 1655;
  CHECK(*combined(timed(row, 1000), slow_clock).timing->isolated.sm_mhz_median == Approx(1705));  // 1755 and 1655
  Record failed = row_record(row, Status::incorrect, "wrong");
  CHECK(combined(timed(row, 1000), failed).status == Status::incorrect);
  CHECK(combined(failed, timed(row, 1000)).status == Status::incorrect);
}

TEST_CASE("against: A B B A cancels what drifts evenly", "[run][against]") {
  // Every run takes 10 % longer than the one before; B is as fast as A.
  class Drifting : public RowExecutor {
   public:
    void open() override {}
    const DeviceReport& measure_host() override { return report_; }
    Record run(const SweepRow& row) override {
      order += row.variant == "cpu.chatty" ? 'A' : 'B';
      return timed(row, 1000.0 + 100 * runs_++);
    }
    std::string order;

   private:
    DeviceReport report_;
    int runs_ = 0;
  };
  const Earlier earlier;
  const Sweep sweep = another_variant();
  auto drifting = std::make_unique<Drifting>();
  const Drifting& inner = *drifting;
  RecordsById counterparts;
  AbbaExecutor executor(std::move(drifting), rows_to_interleave(sweep, earlier.results), counterparts);
  const Record record = executor.run(sweep.rows[0]);
  CHECK(inner.order == "ABBA");
  CHECK(record.timing->isolated.median_ns == counterparts.at("new0").timing->isolated.median_ns);
  executor.run(sweep.rows[2]);
  CHECK(inner.order == "ABBAB");  // it has no counterpart
}

TEST_CASE("against: each row has its verdict, by the counterpart or by the file", "[results][against]") {
  const Earlier earlier;
  Sweep sweep = another_variant();
  sweep.rows.push_back(earlier.sweep.rows[1]);  // the file has it as it is
  const Against against{.path = "base.json", .base = earlier.results, .threshold = 0.05};
  const Json now = results_of(sweep, {timed(sweep.rows[0], 500), timed(sweep.rows[1], 2000), timed(sweep.rows[2], 1),
                                      timed(sweep.rows[3], 1300)});
  // The file says 1000 ns for both; beside the new ones they took 480 and 1000.
  const RecordsById beside{{"new0", timed(earlier.sweep.rows[0], 480)}, {"new1", timed(earlier.sweep.rows[1], 1000)}};
  const Comparison comparison = compare_against(against, now, beside);
  std::map<std::string, Verdict> verdicts;
  for (const ComparedRow& row : comparison.rows) verdicts[row.now->id] = row.verdict;
  CHECK(verdicts.size() == 4);
  CHECK(verdicts.at("new0") == Verdict::noisy);  // 1.04 +- 0.014: not twice as fast, as the file would have it
  CHECK(verdicts.at("new1") == Verdict::slower);
  CHECK(verdicts.at("new2") == Verdict::added);
  CHECK(verdicts.at(sweep.rows[3].id) == Verdict::slower);
  CHECK(exit_code(comparison) == 1);
}

TEST_CASE("against: a run measures in turn, prints verdicts and exits as compare does", "[run][against][worker]") {
  const ScratchFolder folder;
  const Sweep old = copy_sweep({{.variant = "cpu.chatty", .n = 4096}});
  REQUIRE(run_in_child(old, {.output = folder / "old.json"}).ended_well());
  Sweep slow = copy_sweep({{.n = 4096}});
  slow.rows[0].id = "new";
  slow.rows[0].baseline_id.clear();
  RunOptions options{.output = folder / "new.json"};
  options.against = Against{.path = "old.json", .base = read_json(folder / "old.json"), .threshold = 1e6};
  const ChildResult result = run_in_child(slow, options);
  INFO(result.err << result.out);
  CHECK(result.out.find("Against old.json; 1 of the rows were measured in turn") != std::string::npos);
  CHECK(result.out.find("cpu.right over cpu.chatty") != std::string::npos);
  CHECK(result.ended_well());
  CHECK(read_json(folder / "new.json").at("rows").size() == 1);  // the counterpart is not among them
}
