// A reader of a results file is told where its cold rows are not cold: by compare, by both reports, by merged files.
#include "harness/results/cache_warnings.hpp"

#include "harness/results/compare_text.hpp"
#include "harness/results/html/report.hpp"
#include "harness/results/markdown.hpp"
#include "harness/results/merge.hpp"
#include "harness/results/results_file.hpp"
#include "harness/results/run_parts.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/harness/results/schema_check.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/simulated_cache.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

DeviceReport gpu_that(const std::string& uuid, bool clears, std::size_t holds_caches = 1) {
  SimulatedCache cache;
  cache.clears = clears;
  cache.holds_bytes *= holds_caches;
  const Examination measured = examined(cache);
  DeviceReport report;
  report.gpu.emplace().uuid = uuid;
  report.gpu->name = "Test GPU";
  report.noise = measured.noise;
  report.gpu_ceilings = measured.ceilings;
  report.gpu_cache.check = measured.cache;
  return report;
}

// One cold row on each of the GPUs.
Json results_on(const std::vector<DeviceReport>& reports, CacheMode cache = CacheMode::cold) {
  Sweep sweep;
  sweep.name = "n";
  sweep.config_text = R"({"question": "How fast?"})";
  sweep.config_sha256 = std::string(64, 'a');
  sweep.operator_name = "attention_prefill";
  RecordsById records;
  for (const DeviceReport& report : reports) {
    Record record = sample_record();
    record.id = "00000000000" + std::to_string(records.size());
    std::get<std::int64_t>(record.problem.front().second) = 1 + static_cast<std::int64_t>(records.size());
    record.device = report.gpu->uuid;
    record.timing->isolated.cache = record.timing->amortized->cache = cache;
    sweep.rows.push_back({.id = record.id,
                          .operator_name = record.operator_name,
                          .variant = record.variant,
                          .problem = record.problem,
                          .baseline_id = {}});
    records[record.id] = record;
  }
  RunInfo run;
  run.started_at = run.finished_at = "2026-11-29T14:00:00Z";
  run.host = read_host_info();
  run.devices = reports.front();
  Json results = results_json(sweep, run, records);
  note_parts(results, sweep, reports);
  return results;
}

const std::string kNotCleared = "1 row on GPU-2 said to be cold: the isolated times are not";

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("cache warnings: none where clearing works, and none of files of earlier versions", "[results]") {
  Json results = results_on({gpu_that("GPU-1", true)});
  CHECK(cache_warnings(results).empty());
  results = results_on({gpu_that("GPU-1", false)});
  CHECK(cache_warnings(results).size() == 1);
  results["environment"].erase("examined");
  results["environment"].erase("findings");
  CHECK(schema_complaint(results) == "");
  CHECK(cache_warnings(results).empty());
  CHECK_FALSE(says(markdown_report({{"a.json", results}}), "Warning"));
}

TEST_CASE("cache warnings: name the device, count its cold rows alone, and stand in a file valid by the schema",
          "[results][schema]") {
  const Json results = results_on({gpu_that("GPU-1", true), gpu_that("GPU-2", false)});
  CHECK(schema_complaint(results) == "");
  REQUIRE(cache_warnings(results).size() == 1);
  CHECK(says(cache_warnings(results).front(), kNotCleared));
  const Json& examined = results.at("environment").at("examined");
  REQUIRE(examined.size() == 2);
  CHECK(examined[0].at("cache_clear") == "works");
  CHECK(examined[1].at("cache_clear") == "fails");
  CHECK(examined[1].at("device") == "GPU-2");
  int faults = 0;
  for (const Json& finding : results.at("environment").at("findings"))
    if (finding.at("severity") == "fault") {
      ++faults;
      CHECK(finding.at("device") == "GPU-2");
      CHECK(finding.at("topic") == "GPU cache clear");
    }
  CHECK(faults == 1);
  CHECK(cache_warnings(results_on({gpu_that("GPU-2", false)}, CacheMode::warm)).empty());
}

TEST_CASE("cache warnings: input sets that stay in the cache are told apart from a clear that fails", "[results]") {
  const auto warnings = cache_warnings(results_on({gpu_that("GPU-1", true, 8)}));
  REQUIRE(warnings.size() == 1);
  CHECK(says(warnings.front(), "the amortized times are not"));
}

TEST_CASE("cache warnings: stand above a comparison, in both reports and in what was merged", "[results]") {
  const Json good = results_on({gpu_that("GPU-1", true)});
  const Json bad = results_on({gpu_that("GPU-2", false)});
  const std::string in_new = comparison_text(compare_results(good, bad, 0.05), {});
  CHECK(says(in_new, "Warning: in the new file, " + kNotCleared));
  CHECK_FALSE(says(in_new, "in the base file"));
  CHECK(says(comparison_text(compare_results(bad, good, 0.05), {.markdown = true}),
             "Warning: in the base file, " + kNotCleared));
  CHECK_FALSE(says(comparison_text(compare_results(good, good, 0.05), {}), "Warning"));

  CHECK(says(markdown_report({{"a.json", bad}}), "**Warning:** " + kNotCleared));
  const std::string page = html_report({{"a.json", bad}}, {});
  CHECK(says(page, "<p class=\"warning\">Warning: " + kNotCleared));
  CHECK(says(page, "<dt>GPU cache clear (GPU-2)</dt><dd>fault: a read of"));
  CHECK_FALSE(says(html_report({{"a.json", good}}, {}), "Warning: "));

  const Merged merged = merge_results({{"1.json", good}, {"2.json", bad}}, {.duplicates = true});
  REQUIRE(cache_warnings(merged.results).size() == 1);
  CHECK(says(cache_warnings(merged.results).front(), kNotCleared));
}
