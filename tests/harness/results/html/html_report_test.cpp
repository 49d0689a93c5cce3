#include "harness/results/html/report.hpp"

#include <algorithm>

#include "harness/results/html/assets.hpp"
#include "harness/results/html/chart_data.hpp"
#include "harness/results/html/text.hpp"
#include "harness/results/results_file.hpp"
#include "tests/harness/results/html/well_formed.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

constexpr const char* kHostile = "</script><img src=x onerror=alert(1)>\"'&<!--";

Record row(const std::string& id, const std::string& variant, double ns) {
  Record record = sample_record();
  record.id = id;
  record.variant = variant;
  record.timing->headline_ns = record.timing->isolated.median_ns = ns;
  return record;
}

// Three variants of one problem: the baseline, one twice as fast, one that failed; every text is hostile.
NamedResults hostile_results() {
  Record failed = row("c", "cuda.other", 1);
  failed.status = Status::crashed;
  failed.reason = std::string("it said ") + kHostile;
  failed.timing.reset();
  failed.rates.reset();
  RecordsById records{
      {"a", row("a", "cuda.base", 80000)}, {"b", row("b", std::string("cuda.") + kHostile, 40000)}, {"c", failed}};
  Sweep sweep;
  sweep.name = "n";
  sweep.path = kHostile;
  const Json config = {{"name", "n"},
                       {"question", std::string("Is it ") + kHostile},
                       {"axes", {{"seq_len", {1, 2}}}},
                       {"baseline", {{"variant", "cuda.base"}, {"problem", {{"batch", 1}}}}}};
  sweep.config_text = config.dump();
  for (auto& [id, record] : records) {
    record.problem.emplace_back("note", std::string(kHostile) + id);
    sweep.rows.push_back({.id = id,
                          .operator_name = record.operator_name,
                          .variant = record.variant,
                          .problem = record.problem,
                          .baseline_id = "a"});
  }
  RunInfo run;
  run.started_at = "2026-11-29T14:00:00Z";
  run.argv = {"run", kHostile};
  run.host.cpu_model = kHostile;
  return {std::string(kHostile) + ".json", results_json(sweep, run, records)};
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

constexpr PageParts kBare{.style = "p { color: black; }\n", .script = "start();\n", .chart_library = "library();"};

}  // namespace

TEST_CASE("html: text becomes neither markup nor an attribute's end", "[results][html]") {
  CHECK(html_text("a<b>&\"'\n\x01") == "a&lt;b&gt;&amp;&quot;&#39;\n ");
  CHECK(html_element("td", "class=\"n\"", "1 < 2") == "<td class=\"n\">1 &lt; 2</td>");
  const std::string json = script_json({{"a", kHostile}});
  CHECK(json.find('<') == std::string::npos);
  CHECK(Json::parse(json).at("a") == kHostile);
}

TEST_CASE("html report: no label closes a script, opens a tag or ends an attribute", "[results][html]") {
  const std::string page = html_report({hostile_results(), hostile_results()}, kBare);
  CHECK(html_fault(page) == "");
  CHECK(count(page, "<img") == 0);
  CHECK(count(page, "<script") == 4);  // two sections' data, the library, the scripts
  CHECK(count(page, "</script") == 4);
  CHECK(count(page, "<!--") == 1);  // the heading's
  CHECK(page.find("<h2>Is it &lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;&lt;!--</h2>") !=
        std::string::npos);
}

TEST_CASE("html report: a page is one file that asks for nothing", "[results][html]") {
  const std::string page =
      html_report({hostile_results()}, {.style = report_style(), .script = report_script(), .chart_library = {}});
  CHECK(page.starts_with(kHtmlReportHeading));
  CHECK(page.find("default-src 'none'") != std::string::npos);
  for (const char* reference :
       {"<link", "<iframe", " src=\"", "url(", "@import", "fetch(", "XMLHttpRequest", "import(", "WebSocket"}) {
    INFO(reference);
    CHECK(page.find(reference) == std::string::npos);
  }
  CHECK(count(page, "href=\"") == count(page, "href=\"#"));
  CHECK(count(report_script(), "://") == 1);  // the name of the SVG namespace
  CHECK(count(report_style(), "://") == 0);
  CHECK(count(report_script(), "innerHTML") == 0);
}

TEST_CASE("html report: without Chart.js it says so and shows the tables", "[results][html]") {
  PageParts parts = kBare;
  CHECK(html_report({hostile_results()}, parts).find("so it has no charts") == std::string::npos);
  parts.chart_library = {};
  const std::string page = html_report({hostile_results()}, parts);
  CHECK(page.find("so it has no charts") != std::string::npos);
  CHECK(count(page, "<tr data-id=") == 3);
}

TEST_CASE("html report: a row that failed stands in the table with its reason, and without a figure",
          "[results][html]") {
  const std::string page = html_report({hostile_results()}, kBare);
  CHECK(page.find("3 rows: 2 ok, 1 crashed") != std::string::npos);
  const std::size_t begin = page.find("<tr data-id=\"c\"");
  REQUIRE(begin != std::string::npos);
  const std::string line = page.substr(begin, page.find("</tr>", begin) - begin);
  CHECK(line.find("crashed") != std::string::npos);
  CHECK(line.find("it said &lt;/script&gt;") != std::string::npos);
  CHECK(line.find("data-v") == std::string::npos);
}

TEST_CASE("html report: what makes a time less sure stands beside the row's status and ceiling", "[results][html]") {
  NamedResults results = hostile_results();
  Json& first = results.json["rows"][0]["timing"];
  first["isolated"]["samples"] = 1;
  first["isolated"]["flags"] = {"few_samples", "<b>"};
  for (const int i : {0, 1}) {
    Json& timing = results.json["rows"][i]["timing"];
    timing["headline"] = "amortized";
    timing["amortized"]["cache"] = "warm";
  }
  results.json["rows"][1]["rates"]["fraction_of_ceiling"] = nullptr;
  const std::string page = html_report({results}, kBare);
  CHECK(html_fault(page) == "");
  CHECK(page.find("<span class=\"status ok\">\u2713 ok (1 sample, &lt;b&gt;)</span>") != std::string::npos);
  CHECK(page.find(">7 % compute, warm</td>") != std::string::npos);
  CHECK(page.find(">warm cache</td>") != std::string::npos);
}

TEST_CASE("html report: the answer gives the median speed-up and its range", "[results][html]") {
  const std::string page = html_report({hostile_results()}, kBare);
  CHECK(page.find("<p class=\"figure\">2.00\u00d7</p>") != std::string::npos);
  CHECK(page.find("2.00\u00d7 to 2.00\u00d7 as fast, over 1 problem<") != std::string::npos);
}

TEST_CASE("html report: charts know the swept fields, what the baseline changes, and each row's commands",
          "[results][html]") {
  const NamedResults results = hostile_results();
  const Json data = chart_data(read_report_file(results), results.json);
  CHECK(data.at("axes") == Json({"q_len", "kv_len"}));  // seq_len is short for both
  CHECK(data.at("treatment") == Json({"batch"}));
  CHECK(data.at("rows").size() == 3);
  const Json& first = data.at("rows").front();
  CHECK(first.at("reproduce").get<std::string>().starts_with("./inferometer run "));
  CHECK(first.at("profile").get<std::string>().starts_with("./inferometer profile "));
}

TEST_CASE("html report: what the machine did before the run is shown, where the file says it", "[results][html]") {
  NamedResults results = hostile_results();
  Json& state = results.json["environment"]["at_start"];
  state["load_average"] = 7.25;
  state["gpu"] = {{"other_processes", 3}};
  const std::string page = html_report({results}, kBare);
  CHECK(page.find("<h4>Host, at the start</h4>") != std::string::npos);
  CHECK(page.find("<dt>load_average</dt><dd>7.25</dd>") != std::string::npos);
  CHECK(page.find("<h4>GPU, at the start</h4><dl><dt>other_processes</dt><dd>3</dd>") != std::string::npos);
  results.json["environment"].erase("at_start");  // as in files of earlier versions
  CHECK(html_report({results}, kBare).find("at the start") == std::string::npos);
}

TEST_CASE("html report: what is no results file is named", "[results][html]") {
  CHECK_THROWS_WITH(html_report({{"x.json", Json::object()}}, kBare),
                    contains_text("x.json is no inferometer.results/1 file"));
}
