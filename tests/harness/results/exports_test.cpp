#include "harness/results/exports.hpp"

#include "harness/results/results_file.hpp"
#include "harness/run/row_record.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

const std::string kNasty = "a \"quote\", a comma,\na line, <tags> & </script> \x01";

// One row that is ok, one that is wrong, one that is unsupported.
Json three_rows() {
  const Sweep sweep = copy_sweep({{.n = 1}, {.n = 2}, {.n = 3}});
  RecordsById records;
  Record good = sample_record();
  good.id = sweep.rows[0].id;
  good.device = "GPU-1";
  records[good.id] = good;
  records[sweep.rows[1].id] = row_record(sweep.rows[1], Status::incorrect, kNasty);
  records[sweep.rows[2].id] = row_record(sweep.rows[2], Status::unsupported, "needs sm_90");
  DeviceReport devices;
  devices.gpu.emplace().name = "NVIDIA H200";
  return results_json(sweep,
                      {.started_at = "2026-11-30T00:00:00Z",
                       .finished_at = "2026-11-30T00:01:00Z",
                       .argv = {},
                       .host = read_host_info(),
                       .devices = devices},
                      records);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// RFC 4180, as another program would read it.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines{{""}};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& cell = lines.back().back();
    if (quoted) {
      if (text[i] != '"') {
        cell += text[i];
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += text[++i];
      } else {
        quoted = false;
      }
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == ',') {
      lines.back().emplace_back();
    } else if (text.compare(i, 2, "\r\n") == 0) {
      ++i;
      if (i + 1 < text.size()) lines.push_back({""});
    } else {
      cell += text[i];
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("export: CSV has a column for every field and metric, and keeps any text intact", "[results][export]") {
  const auto lines = read_csv(export_csv({three_rows()}));
  REQUIRE(lines.size() == 4);
  for (const auto& line : lines) CHECK(line.size() == lines.front().size());
  const auto cell = [&](std::size_t row, const std::string& column) {
    const auto found = std::find(lines[0].begin(), lines[0].end(), column);
    INFO(column);
    REQUIRE(found != lines[0].end());
    return lines[row][static_cast<std::size_t>(found - lines[0].begin())];
  };
  CHECK(cell(1, "status") == "ok");
  CHECK(cell(1, "device") == "GPU-1");
  CHECK(cell(1, "headline_ns") == "80000.0");
  CHECK(cell(1, "tokens_per_s") == "12.5");
  CHECK(cell(1, "contexts") == "[7,0,300]");
  CHECK(cell(1, "n") == "");  // a field of the other rows
  CHECK(cell(2, "n") == "2");
  CHECK(cell(2, "headline_ns") == "");
  CHECK(cell(2, "reason") == kNasty);
}

TEST_CASE("export: JUnit counts failures and skips, and escapes what XML cannot hold", "[results][export]") {
  const std::string xml = export_junit({three_rows(), three_rows()});
  CHECK(count(xml, "<testsuite ") == 2);
  CHECK(count(xml, "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\"") == 2);
  CHECK(count(xml, "<testcase ") == 6);
  CHECK(count(xml, "<failure type=\"incorrect\"") == 2);
  CHECK(count(xml, "<skipped message=\"needs sm_90\"/>") == 2);
  CHECK(xml.find("a &quot;quote&quot;, a comma,&#10;a line, &lt;tags&gt; &amp; &lt;/script&gt; \\x01") !=
        std::string::npos);
  CHECK(xml.find('\x01') == std::string::npos);
  CHECK(xml.find("time=\"0.000080000\"") != std::string::npos);
}

TEST_CASE("export: Google Benchmark's JSON has times in ns, and errors where there are none", "[results][export]") {
  const Json json = Json::parse(export_google_benchmark({three_rows()}));
  CHECK(json.at("context").at("num_cpus").get<int>() > 0);
  CHECK(json.at("context").at("gpu") == "NVIDIA H200");
  const Json& good = json.at("benchmarks").at(0);
  CHECK(good.at("name") ==
        "attention_prefill/cuda.flash_sm80/batch:1/causal:true/dtype:f16/scale:0.5/contexts:[7,0,300]");
  CHECK(good.at("run_type") == "iteration");
  CHECK(good.at("real_time") == 80000.0);
  CHECK(good.at("cpu_time") == 80000.0);
  CHECK(good.at("time_unit") == "ns");
  CHECK(good.at("iterations") == 120);
  CHECK(good.at("bytes_per_second") == 2e11);
  CHECK(good.at("tokens_per_s") == 12.5);
  CHECK_FALSE(good.contains("error_occurred"));
  const Json& wrong = json.at("benchmarks").at(1);
  CHECK(wrong.at("error_occurred") == true);
  CHECK(wrong.at("error_message") == "incorrect: " + kNasty);
  CHECK(wrong.at("real_time") == 0.0);
}

TEST_CASE("export: NVBench's JSON has what its comparison looks up", "[results][export]") {
  const Json json = Json::parse(export_nvbench({three_rows()}));
  CHECK(json.at("meta").at("version").at("json").at("string") == "1.0.0");
  CHECK(json.at("devices").at(0).at("name") == "NVIDIA H200");
  REQUIRE(json.at("benchmarks").size() == 2);
  const Json& state = json.at("benchmarks").at(0).at("states").at(0);
  CHECK(state.at("name") == "Device=0 batch=1 causal=true dtype=f16 scale=0.5 contexts=[7,0,300]");
  CHECK(state.at("is_skipped") == false);
  std::map<std::string, double> values;
  for (const Json& summary : state.at("summaries")) {
    CHECK(summary.at("data").at(0).at("name") == "value");
    CHECK(summary.at("data").at(0).at("type") == "float64");
    values[summary.at("tag")] = summary.at("data").at(0).at("value");
  }
  CHECK(values.at("nv/cold/time/gpu/mean") == Approx(80e-6));
  CHECK(values.at("nv/cold/time/gpu/stdev/relative") == Approx(1.4826 * 210 / 80000));
  CHECK(values.at("nv/batch/time/gpu/mean") == Approx(78e-6));
  const Json& copies = json.at("benchmarks").at(1);
  CHECK(copies.at("states").size() == 2);
  CHECK(copies.at("states").at(0).at("is_skipped") == true);
  CHECK(copies.at("axes").at(0).at("name") == "n");
  CHECK(copies.at("axes").at(0).at("values").size() == 2);
}

TEST_CASE("export: NVBench's JSON gives a CPU row no figure of a GPU", "[results][export]") {
  Json file = three_rows();
  file["rows"][0]["backend"] = "cpu";
  const Json json = Json::parse(export_nvbench({file}));
  const Json& summaries = json.at("benchmarks").at(0).at("states").at(0).at("summaries");
  REQUIRE(summaries.size() == 2);
  for (const Json& summary : summaries) CHECK(text_from(summary.at("tag")).starts_with("nv/cpu_only/time/cpu/"));
}

TEST_CASE("export: Google Benchmark's JSON counts more launches than an int holds", "[results][export]") {
  Json file = three_rows();
  file["rows"][0]["timing"]["headline"] = "amortized";
  file["rows"][0]["timing"]["amortized"]["launches"] = 3'000'000'000;
  const Json json = Json::parse(export_google_benchmark({file}));
  CHECK(json.at("benchmarks").at(0).at("iterations") == 3'000'000'000);
}

TEST_CASE("export: files without rows are fine in every format", "[results][export]") {
  Json empty = three_rows();
  empty["rows"] = Json::array();
  for (const ExportFormat& format : export_formats()) {
    INFO(format.name);
    CHECK_FALSE(format.write({empty}).empty());
  }
}
