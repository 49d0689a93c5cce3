// results/schema.json against what the program writes, and against files that must not pass.
#include <cstdio>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "harness/results/record_json.hpp"
#include "harness/results/results_file.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/harness/results/schema_check.hpp"
#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

Json good_document() {
  Sweep sweep;
  sweep.path = "experiments/a.json";
  sweep.name = "a";
  sweep.config_text = "{}";
  sweep.config_sha256 = std::string(64, 'a');
  sweep.rows.push_back({.id = sample_record().id,
                        .operator_name = "attention_prefill",
                        .variant = "cuda.flash_sm80",
                        .problem = sample_record().problem,
                        .baseline_id = sample_record().id});
  RunInfo run;
  run.started_at = run.finished_at = "2026-11-29T14:00:00Z";
  run.host = read_host_info();
  run.devices.gpu = GpuInfo{.name = "NVIDIA H200",
                            .sm = 90,
                            .sm_count = 132,
                            .memory_bytes = 1,
                            .l2_bytes = 1,
                            .driver = "1",
                            .cuda_runtime = "1",
                            .max_sm_mhz = 1,
                            .power_limit_w = 1,
                            .uuid = "GPU-1"};
  run.devices.at_start.gpu = GpuState{.persistence = true,
                                      .sm_mhz = 345,
                                      .memory_mhz = std::nullopt,
                                      .temperature_c = 31,
                                      .power_w = 75.5,
                                      .other_processes = 0,
                                      .clock_limits = {"power_limited"}};
  run.devices.gpu_cache.check.emplace().input_sets = 5;
  run.devices.cpu_noise.emplace();
  run.devices.cpu_cache.absent = "too little memory";
  return results_json(sweep, run, {{sample_record().id, sample_record()}});
}

}  // namespace

TEST_CASE("schema: a full row of a GPU is valid", "[results][schema]") {
  CHECK(schema_complaint(good_document()) == "");
}

TEST_CASE("schema: a row says what a profiler said, or why there was none", "[results][schema][profiler]") {
  Json document = good_document();
  document["rows"][0]["timing"] = timing_json(*profiled_record().timing);
  CHECK(schema_complaint(document) == "");
  Json lacking = document;
  lacking["rows"][0]["timing"]["profiler"].erase("between_events_ns");
  CHECK(schema_complaint(lacking) != "");
  Json unnamed = document;
  unnamed["rows"][0]["timing"]["profiler"]["kernels"][0]["grid"] = 1;
  CHECK(schema_complaint(unnamed) != "");
  Json absent = good_document();
  absent["rows"][0]["timing"]["profiler_absent"] = "no libcupti.so.13 was found";
  CHECK(schema_complaint(absent) == "");
}

TEST_CASE("schema: a file with every status is valid as written", "[results][schema][run]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  run_in_child(copy_sweep({{"cpu.right"},
                           {"cpu.zeros"},
                           {"cpu.throws"},
                           {"cpu.aborts"},
                           {"cpu.greedy"},
                           {"cpu.choosy"},
                           {.not_finite = true}}),
               {.output = output, .argv = {"inferometer", "run", "a.json"}});
  const Json file = read_json(output);
  CHECK(schema_complaint(file) == "");
  CHECK(file.at("environment").at("at_start").at("load_average").is_number());  // read by the worker, brought here
}

TEST_CASE("schema: the file of a cold sweep is valid and holds what doctor finds on the processors",
          "[results][schema][run][doctor]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  Sweep sweep = copy_sweep({{"cpu.right"}});
  sweep.measure.cache = CacheMode::cold;
  run_in_child(sweep, {.output = output, .argv = {"inferometer", "run", "a.json"}});
  const Json file = read_json(output);
  CHECK(schema_complaint(file) == "");
  const Json& examined = file.at("environment").at("examined");
  REQUIRE(examined.size() == 1);
  INFO(examined.dump(1));
  CHECK(examined.front().at("device") == "cpu");
  CHECK(examined.front().at("cache").at("cold_ns").get<double>() > 0);
  CHECK(examined.front().at("cache_clear") != "unchecked");
  CHECK(examined.front().at("noise").at("event_resolution_ns").get<double>() > 0);
  std::set<std::string> topics;
  for (const Json& finding : file.at("environment").at("findings")) topics.insert(finding.at("topic"));
  for (const char* topic : {"CPU governor", "CPU noise", "CPU memory ceiling", "CPU cache clear", "CPU rotation"}) {
    INFO(topic);
    CHECK(topics.contains(topic));
  }
}

TEST_CASE("schema: a bad file fails", "[results][schema]") {
  using Change = std::function<void(Json & document, Json & row)>;
  const std::vector<std::pair<std::string, Change>> changes{
      {"another version", [](Json& d, Json&) { d["schema"] = "inferometer.results/2"; }},
      {"an unknown key", [](Json& d, Json&) { d["comment"] = "x"; }},
      {"no environment", [](Json& d, Json&) { d.erase("environment"); }},
      {"an unknown key in the environment", [](Json& d, Json&) { d["environment"]["host"]["name"] = "x"; }},
      {"an unknown verdict", [](Json& d, Json&) { d["environment"]["examined"][0]["cache_clear"] = "fine"; }},
      {"a check of no device", [](Json& d, Json&) { d["environment"]["examined"][0].erase("device"); }},
      {"an unknown severity", [](Json& d, Json&) { d["environment"]["findings"][0]["severity"] = "bad"; }},
      {"a short hash", [](Json& d, Json&) { d["config_sha256"] = "abc"; }},
      {"a local time", [](Json& d, Json&) { d["started_at"] = "29.11.2026"; }},
      {"an unknown status", [](Json&, Json& r) { r["status"] = "fine"; }},
      {"a wrong row with a time",
       [](Json&, Json& r) {
         r["status"] = "incorrect";
         r["reason"] = "y[0] is wrong";
         r["rates"] = r["speedup"] = r["speedup_ci"] = nullptr;
       }},
      {"a wrong row with rates",
       [](Json&, Json& r) {
         r["status"] = "incorrect";
         r["reason"] = "y[0] is wrong";
         r["timing"] = r["speedup"] = r["speedup_ci"] = nullptr;
       }},
      {"a wrong row with a speedup",
       [](Json&, Json& r) {
         r["status"] = "incorrect";
         r["reason"] = "y[0] is wrong";
         r["timing"] = r["rates"] = nullptr;
       }},
      {"a failed row without a reason",
       [](Json&, Json& r) {
         r["status"] = "crashed";
         r["timing"] = r["rates"] = r["speedup"] = r["speedup_ci"] = nullptr;
       }},
      {"an ok row without a time", [](Json&, Json& r) { r["timing"] = nullptr; }},
      {"an ok row that was not checked again", [](Json&, Json& r) { r["check"]["repeated_after_timing"] = false; }},
      {"a negative time", [](Json&, Json& r) { r["timing"]["headline_ns"] = -1; }},
      {"a time as text", [](Json&, Json& r) { r["timing"]["headline_ns"] = "80 us"; }},
      {"a key that the design does not have", [](Json&, Json& r) { r["timing"]["isolated"]["mean_ns"] = 1; }},
      {"a time that does not say whether the device was rested",
       [](Json&, Json& r) { r["timing"]["isolated"].erase("rest_seconds"); }},
      {"a negative rest", [](Json&, Json& r) { r["timing"]["isolated"]["rest_seconds"] = -1; }},
      {"memory without a unit", [](Json&, Json& r) { r["memory"]["scratch"] = 1; }},
      {"an id of another length", [](Json&, Json& r) { r["id"] = "12"; }},
      {"a metric in capitals", [](Json&, Json& r) { r["metrics"]["Tokens"] = 1; }},
  };
  for (const auto& [name, change] : changes) {
    INFO(name);
    Json document = good_document();
    change(document, document["rows"][0]);
    CHECK(schema_complaint(document) != "");
  }
}

TEST_CASE("schema: docs/results.md names every field of a row, and no other of its parts", "[results][schema][docs]") {
  const std::string root = INFEROMETER_SOURCE_DIR;
  const std::string page = read_text(root + "/docs/results.md");
  const Json schema = read_json(root + "/results/schema.json");
  const auto is_named = [&](const std::string& field) { return page.find("`" + field + "`") != std::string::npos; };
  const Json& definitions = schema.at("definitions");
  for (const auto& [field, definition] : schema.at("properties").items()) {
    INFO(field);
    if (field != "rows") CHECK(is_named(field));
  }
  for (const auto& [field, definition] : definitions.at("row").at("properties").items()) {
    INFO(field);
    CHECK(is_named(field));
  }
  const Json& timing = definitions.at("timing").at("properties");
  const std::vector<std::pair<std::string, Json>> parts{
      {"check", definitions.at("check").at("properties")},
      {"timing", timing},
      {"timing", timing.at("isolated").at("properties")},
      {"timing", timing.at("amortized").at("anyOf").at(1).at("properties")},
      {"profiler", timing.at("profiler").at("properties")},
      {"profiler", timing.at("profiler").at("properties").at("kernels").at("items").at("properties")},
      {"work", definitions.at("work").at("properties")},
      {"rates", definitions.at("rates").at("properties")},
      {"memory", definitions.at("memory").at("properties")}};
  std::set<std::string> known{"row", "check", "timing", "work", "rates", "memory", "compute"};
  for (const auto& [part, fields] : parts) {
    for (const auto& [field, definition] : fields.items()) {
      INFO(part << "." << field);
      CHECK(is_named(field));
      known.insert(field);
    }
  }
  // Nor does the first column of the table of a row.
  const Json& row = definitions.at("row").at("properties");
  std::istringstream lines(page.substr(page.find("\n| `id`")));
  int rows = 0;
  for (std::string line; std::getline(lines, line) && (line.empty() || line.front() == '|');) {
    if (!line.starts_with("| `")) continue;
    ++rows;
    const std::string column = line.substr(0, line.find(" |", 1));
    for (std::size_t at = 0; (at = column.find('`', at)) != std::string::npos;) {
      const std::size_t end = column.find('`', at + 1);
      const std::string word = column.substr(at + 1, end - at - 1);
      INFO("row: " << word);
      CHECK(row.contains(word));
      at = end + 1;
    }
  }
  CHECK(rows >= 10);
  // The paragraph of each part names no field that is not there.
  for (const char* part : {"check", "timing", "profiler", "work", "memory"}) {
    const std::size_t begin = page.find(std::string("\n`") + part + "`:");
    REQUIRE(begin != std::string::npos);
    const std::string paragraph = page.substr(begin, page.find("\n\n", begin + 1) - begin);
    for (std::size_t at = 0; (at = paragraph.find('`', at)) != std::string::npos;) {
      const std::size_t end = paragraph.find('`', at + 1);
      const std::string word = paragraph.substr(at + 1, end - at - 1);
      INFO(part << ": " << word);
      CHECK(known.contains(word));
      at = end + 1;
    }
  }
}

TEST_CASE("docs/results.md: the row that it reads is in the published file, with these figures", "[results][docs]") {
  const std::string root = INFEROMETER_SOURCE_DIR;
  const std::string page = read_text(root + "/docs/results.md");
  const Json file = read_json(root + "/results/h200/attention_decode.json");
  const Json* shown = nullptr;
  for (const Json& row : file.at("rows"))
    if (page.find("Row `" + row.at("id").get<std::string>() + "`") != std::string::npos) shown = &row;
  REQUIRE(shown != nullptr);
  const auto says = [&](const char* format, const Json& value) {
    char text[96];
    std::snprintf(text, sizeof text, format, value.get<double>());
    INFO(text);
    CHECK(page.find(text) != std::string::npos);
  };
  says("`headline_ns` of %.0f,", shown->at("timing").at("headline_ns"));
  says("`ci_half_width_ratio` %.4f,", shown->at("timing").at("isolated").at("ci_half_width_ratio"));
  says("`fraction_of_ceiling` %.3f,", shown->at("rates").at("fraction_of_ceiling"));
  says("`speedup` %.3f,", shown->at("speedup"));
  CHECK(shown->at("variant") == "cuda.paged");
  CHECK(shown->at("timing").at("headline") == "isolated");
  CHECK(shown->at("rates").at("limit") == "memory");
}
