#include "harness/results/markdown.hpp"

#include "harness/results/record_json.hpp"
#include "harness/results/results_file.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using inferometer::test::sample_record;

namespace {

constexpr const char* kConfig =
    R"({"name": "n", "question": "Which | is <b>fast</b>?", "baseline": "cuda.flash_sm80"})";

Record row(const std::string& id, const std::string& variant, std::int64_t batch) {
  Record record = sample_record();
  record.id = id;
  record.variant = variant;
  record.timing->isolated.flags.clear();
  std::get<std::int64_t>(record.problem.front().second) = batch;
  return record;
}

// Two problems; the second variant is twice as fast on the first and refuses the second.
NamedResults sample_results() {
  Record fast = row("b", "cuda.other", 1);
  fast.timing->headline_ns = fast.timing->isolated.median_ns = 40000;
  Record refused = row("d", "cuda.other", 8);
  refused.status = Status::unsupported;
  refused.reason = "batch must be 1 | got 8";
  refused.timing.reset();
  refused.rates.reset();
  const RecordsById records{
      {"a", row("a", "cuda.flash_sm80", 1)}, {"b", fast}, {"c", row("c", "cuda.flash_sm80", 8)}, {"d", refused}};
  Sweep sweep;
  sweep.name = "n";
  sweep.config_text = kConfig;
  for (const auto& [id, record] : records)
    sweep.rows.push_back({.id = id,
                          .operator_name = record.operator_name,
                          .variant = record.variant,
                          .problem = record.problem,
                          .baseline_id = id < "c" ? "a" : "c"});
  RunInfo run;
  run.started_at = "2026-11-29T14:00:00Z";
  run.devices.gpu.emplace();
  run.devices.gpu->name = "Test GPU";
  run.devices.gpu->driver = "1.2";
  run.devices.gpu->cuda_runtime = "13.0";
  return {"h200/n.json", results_json(sweep, run, records)};
}

}  // namespace

TEST_CASE("markdown: one line a problem, one column a variant, the fields that vary in front", "[results][markdown]") {
  const std::string text = markdown_report({sample_results()});
  INFO(text);
  CHECK(text.find("| batch | cuda.flash\\_sm80 | cuda.other |\n| ---: | ---: | ---: |\n") != std::string::npos);
  CHECK(text.find("| 1 | 80.0 us, 50.0 TFLOP/s | 40.0 us, 50.0 TFLOP/s, **2.00x** |\n") != std::string::npos);
  CHECK(text.find("| 8 | 80.0 us, 50.0 TFLOP/s | unsupported |\n") != std::string::npos);
}

TEST_CASE("markdown: what makes a time less sure stands behind it", "[results][markdown]") {
  NamedResults results = sample_results();
  Json& timing = results.json["rows"][0]["timing"];
  timing["headline"] = "amortized";
  timing["amortized"]["cache"] = "warm";
  timing["isolated"]["samples"] = 3;
  timing["isolated"]["flags"] = {"few_samples", "clock_moved"};
  const std::string text = markdown_report({results});
  INFO(text);
  CHECK(text.find("| 1 | 80.0 us, 50.0 TFLOP/s (warm, 3 samples, clock\\_moved) | ") != std::string::npos);
  CHECK(text.find("| 40.0 us, 50.0 TFLOP/s, **2.00x** |\n") != std::string::npos);
  CHECK(text.find(" In brackets: what was noted while a row was timed.\n") != std::string::npos);
  CHECK(markdown_report({sample_results()}).find("In brackets") == std::string::npos);
}

TEST_CASE("markdown: with headline metrics, one line a row and a column for each metric", "[results][markdown]") {
  NamedResults results = sample_results();
  for (Json& json : results.json["rows"]) json["operator"] = "attention_decode";
  results.json["rows"][1]["metrics"]["quantization_rel_error"] = 0.0123;
  const std::string text = markdown_report({results});
  INFO(text);
  CHECK(text.find("| batch | variant | time | quantization rel error |\n| ---: | ---: | ---: | ---: |\n"
                  "| 1 | cuda.flash\\_sm80 | 80.0 us, 50.0 TFLOP/s |  |\n"
                  "| 1 | cuda.other | 40.0 us, 50.0 TFLOP/s, **2.00x** | 1.2e-02 |\n"
                  "| 8 | cuda.flash\\_sm80 | 80.0 us, 50.0 TFLOP/s |  |\n"
                  "| 8 | cuda.other | unsupported |  |\n") != std::string::npos);
}

TEST_CASE("markdown: the metrics of a simulation stand before its time and sum it up", "[results][markdown]") {
  NamedResults results = sample_results();
  for (Json& json : results.json["rows"]) {
    json["operator"] = "kv_memory";
    json["work"] = {{"flops", 0.0}, {"bytes", 0.0}, {"arithmetic", "f32"}};
    json["rates"] = nullptr;
  }
  results.json["rows"][1]["metrics"] = {{"preemptions", 3}, {"kv_token_share_of_allocated_ratio", 0.931}};
  const std::string text = markdown_report({results});
  INFO(text);
  CHECK(text.find("\n- cuda.other: kv token share of allocated 93.1 %, over 1 problem\n") != std::string::npos);
  CHECK(text.find("| batch | variant | kv token share of allocated | preemptions | run time |\n") != std::string::npos);
  CHECK(text.find("| 1 | cuda.other | 93.1 % | 3 | 40.0 us |\n") != std::string::npos);
  CHECK(text.find("| 8 | cuda.other |  |  | unsupported |\n") != std::string::npos);
  CHECK(text.find("peed-up") == std::string::npos);
  CHECK(text.find(" as fast as ") == std::string::npos);
}

TEST_CASE("markdown: the heading explains bold figures only where there are some", "[results][markdown]") {
  NamedResults results = sample_results();
  CHECK(markdown_report({results}).find("Bold: speed-up over cuda.flash\\_sm80.") != std::string::npos);
  for (Json& json : results.json["rows"]) json["speedup"] = nullptr;
  CHECK(markdown_report({results}).find("Bold") == std::string::npos);
}

TEST_CASE("markdown: a default that the sweep does not name is not in the heading", "[results][markdown]") {
  NamedResults results = sample_results();  // of attention_prefill, whose dtype is f16 by default
  CHECK(markdown_report({results}).find("\n\ncausal true, scale 0.5, contexts [7, 0, 300]. Bold: ") !=
        std::string::npos);
  results.json["config"]["fixed"] = {{"dtype", "f16"}};
  CHECK(markdown_report({results}).find("\n\ncausal true, dtype f16, scale 0.5, ") != std::string::npos);
}

TEST_CASE("markdown: a line for each variant sums up its speed-ups", "[results][markdown]") {
  CHECK(
      markdown_report({sample_results()}).find("- cuda.other: 2.00x as fast as cuda.flash\\_sm80, over 1 problem\n") !=
      std::string::npos);
}

TEST_CASE("markdown: says where the numbers come from, and why a figure is missing", "[results][markdown]") {
  const std::string text = markdown_report({sample_results()});
  INFO(text);
  CHECK(text.find("Source: [h200/n.json](h200/n.json); Test GPU, driver 1.2, CUDA 13.0; 2026-11-29; commit ") !=
        std::string::npos);
  CHECK(text.find("- cuda.other unsupported: batch must be 1 \\| got 8 (1 row)\n") != std::string::npos);
}

TEST_CASE("markdown: text of a config cannot become markup", "[results][markdown]") {
  const std::string text = markdown_report({sample_results()});
  CHECK(text.find("## Which \\| is \\<b>fast\\</b>?\n") != std::string::npos);
}

TEST_CASE("markdown: another JSON file is refused by name", "[results][markdown]") {
  CHECK_THROWS_WITH(markdown_report({{"other.json", Json{{"schema", "inferometer.sweep/1"}}}}),
                    test::contains_text("other.json is no inferometer.results/1 file"));
}

TEST_CASE("markdown: rows whose fields differ in number are matched by the fields' names", "[results][markdown]") {
  NamedResults results = sample_results();
  Json& problem = results.json["rows"][2]["problem"];
  problem = {{"causal", true}, {"batch", 8}, {"window", 64}};  // fewer, in another order, and a new one
  const std::string text = markdown_report({results});
  INFO(text);
  CHECK(text.find("| batch | dtype | scale | contexts | window | cuda.flash\\_sm80 | cuda.other |\n") !=
        std::string::npos);
  CHECK(text.find("| 8 |  |  |  | 64 | 80.0 us, 50.0 TFLOP/s |  |\n") != std::string::npos);
  CHECK(text.find("| 8 | f16 | 0.5 | [7, 0, 300] |  |  | unsupported |\n") != std::string::npos);
  CHECK(text.find("\ncausal true. ") != std::string::npos);
}

TEST_CASE("markdown: rows of two operators are refused", "[results][markdown]") {
  NamedResults results = sample_results();
  results.json["rows"][1]["operator"] = "matmul";
  CHECK_THROWS_WITH(markdown_report({results}),
                    test::contains_text("all rows must be of one operator, got attention_prefill and matmul"));
}

TEST_CASE("markdown: rows that are no list are refused", "[results][markdown]") {
  NamedResults results = sample_results();
  results.json["rows"] = GENERATE(Json(nullptr), Json::object());
  CHECK_THROWS_WITH(markdown_report({results}), test::contains_text("rows must be a list"));
}

TEST_CASE("markdown: brackets are escaped and control bytes dropped", "[results][markdown]") {
  NamedResults results = sample_results();
  results.json["config"]["question"] = "[a](b)\x1b[2J\ttab\x7f";
  CHECK(markdown_report({results}).find("## \\[a\\](b)\\[2J tab\n") != std::string::npos);
}

TEST_CASE("markdown: a link leads to its file whatever the file is called", "[results][markdown]") {
  NamedResults results = sample_results();
  results.path = "../a b/(50%)\xc3\xa9].json";
  const std::string text = markdown_report({results});
  INFO(text);
  CHECK(text.find("[../a b/(50%)\xc3\xa9\\].json](../a%20b/%2850%25%29%C3%A9%5D.json); ") != std::string::npos);
}
