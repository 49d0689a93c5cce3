#include "harness/results/merge.hpp"

#include "harness/results/compare.hpp"
#include "harness/results/report_file.hpp"
#include "harness/results/results_file.hpp"
#include "harness/results/run_parts.hpp"
#include "harness/sweep/shard.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/harness/results/schema_check.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

constexpr int kShards = 3;

Sweep six_rows() {
  Sweep sweep = copy_sweep({{}, {}, {}, {}, {}, {}});
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    sweep.rows[i].baseline_id.clear();
    sweep.rows[i].problem.front().second = static_cast<std::int64_t>(i + 1);
  }
  return sweep;
}

DeviceReport one_gpu() {
  DeviceReport report;
  GpuInfo& gpu = report.gpu.emplace();
  gpu.name = "NVIDIA H200";
  gpu.uuid = "GPU-1";
  report.noise = {.repeat_ratio = 0.01, .event_resolution_ns = 1, .empty_launch_ns = 1};
  return report;
}

MergePart part_of(Sweep sweep, int index, DeviceReport report = one_gpu(), std::uint64_t seed = 1) {
  keep_shard(sweep, {.index = index, .count = kShards});
  RecordsById records;
  for (const SweepRow& row : sweep.rows) {
    Record record = sample_record();
    record.id = row.id;
    record.device = device_name(record, report);
    records[row.id] = record;
  }
  const std::string minute = std::to_string(index);
  const RunInfo info{.started_at = "2026-11-30T00:0" + minute + ":00Z",
                     .finished_at = "2026-11-30T00:1" + minute + ":00Z",
                     .seed = seed,
                     .argv = {"run"},
                     .host = read_host_info(),
                     .devices = report};
  Json results = results_json(sweep, info, records);
  note_parts(results, sweep, {report});
  return {.name = "part" + std::to_string(index) + ".json", .results = std::move(results)};
}

std::vector<MergePart> all_parts() { return {part_of(six_rows(), 3), part_of(six_rows(), 1), part_of(six_rows(), 2)}; }

std::vector<std::string> row_ids(const Json& results) {
  std::vector<std::string> ids;
  for (const Json& row : results.at("rows")) ids.push_back(row.at("id"));
  return ids;
}

}  // namespace

TEST_CASE("merge: shards in any order become the sweep in its order, valid by the schema", "[results][merge]") {
  const Merged merged = merge_results(all_parts(), {});
  CHECK(merged.missing.empty());
  std::vector<std::string> wanted;
  for (const SweepRow& row : six_rows().rows) wanted.push_back(row.id);
  CHECK(row_ids(merged.results) == wanted);
  CHECK(merged.results.at("started_at") == "2026-11-30T00:01:00Z");
  CHECK(merged.results.at("finished_at") == "2026-11-30T00:13:00Z");
  CHECK(merged.results.at("parts").size() == 3);
  CHECK_FALSE(merged.results.contains("shard"));
  for (const Json& row : merged.results.at("rows")) CHECK(row.at("device") == "GPU-1");
  CHECK(schema_complaint(merged.results) == "");
  CHECK(schema_complaint(all_parts().front().results) == "");
}

TEST_CASE("merge: a merged file can be merged again with what it lacked", "[results][merge]") {
  Merged some = merge_results({part_of(six_rows(), 1), part_of(six_rows(), 2)}, {});
  CHECK(some.missing.size() == 2);
  const Merged whole = merge_results({{"some.json", some.results}, part_of(six_rows(), 3)}, {});
  CHECK(whole.missing.empty());
  CHECK(whole.results.at("rows").size() == 6);
  std::vector<std::string> files;
  for (const Json& part : whole.results.at("parts")) files.push_back(part.at("file"));
  CHECK(files == std::vector<std::string>{"part1.json", "part2.json", "part3.json"});
  CHECK(schema_complaint(whole.results) == "");
}

TEST_CASE("merge: missing rows are named", "[results][merge]") {
  const std::vector<MergePart> parts = all_parts();
  const Merged merged = merge_results({parts[0], parts[2]}, {});
  CHECK(merged.missing == row_ids(parts[1].results));
}

TEST_CASE("merge: a row in two parts is named with both, or the last is taken", "[results][merge]") {
  std::vector<MergePart> parts = all_parts();
  parts.push_back(part_of(six_rows(), 1));
  parts.back().name = "again.json";
  parts.back().results["rows"][0]["reason"] = "the second time";
  const std::string id = parts.back().results["rows"][0]["id"];
  CHECK_THROWS_WITH(merge_results(parts, {}), contains_text("row " + id + " is in part1.json and in again.json"));
  const Merged merged = merge_results(parts, {.duplicates = true});
  CHECK(merged.results.at("rows").size() == 6);
  for (const Json& row : merged.results.at("rows"))
    if (row.at("id") == id) CHECK(row.at("reason") == "the second time");
}

TEST_CASE("merge: other configs, binaries and devices are refused unless allowed, each by its name",
          "[results][merge]") {
  Sweep other_config = six_rows();
  other_config.config_sha256 = std::string(64, 'd');
  DeviceReport other_gpu = one_gpu();
  other_gpu.gpu->name = "NVIDIA A100";
  MergePart other_binary = part_of(six_rows(), 2);
  other_binary.results["environment"]["program"]["git_commit"] = "another";
  struct Case {
    MergePart part;
    MergeAllowed allowed;
    std::string words;
  };
  const std::vector<Case> cases{
      {part_of(other_config, 2), {.config = true}, "differ in config: config_sha256 is"},
      {part_of(six_rows(), 2, one_gpu(), 7), {.config = true}, "differ in config: seed is 1 and 7"},
      {other_binary, {.binary = true}, "differ in binary: git_commit is"},
      {part_of(six_rows(), 2, other_gpu), {.devices = true}, "differ in devices: name is"},
  };
  for (const Case& one : cases) {
    const std::vector<MergePart> parts{part_of(six_rows(), 1), one.part};
    CHECK_THROWS_WITH(merge_results(parts, {}), contains_text("part1.json and part2.json " + one.words));
    CHECK(merge_results(parts, one.allowed).results.at("rows").size() == 4);
  }
}

TEST_CASE("merge: a file of several devices and programs says so in a report, and is compared with none",
          "[results][merge]") {
  DeviceReport other_gpu = one_gpu();
  other_gpu.gpu->name = "NVIDIA A100";
  MergePart other = part_of(six_rows(), 2, other_gpu);
  other.results["environment"]["program"]["git_commit"] = "another";
  const Json one = part_of(six_rows(), 1).results;
  const Json mixed = merge_results({{"one.json", one}, other}, {.binary = true, .devices = true}).results;
  const std::string provenance = read_report_file({"mixed.json", mixed}).provenance;
  CHECK_THAT(provenance, contains_text("NVIDIA H200, driver ") && contains_text(" and NVIDIA A100, driver ") &&
                             contains_text(" and another"));
  CHECK(compare_results(one, one, 0.05).obstacles.empty());
  const std::vector<std::string> wanted{
      R"(the new file was merged from parts on "NVIDIA H200" of 0 MHz and 0.0 W and on "NVIDIA A100" of 0 MHz and 0.0 W)"};
  CHECK(compare_results(one, mixed, 0.05).obstacles == wanted);
  CHECK(compare_results(mixed, one, 0.05).obstacles.size() == 1);
  const Json alike = merge_results({{"one.json", one}, part_of(six_rows(), 3)}, {}).results;
  CHECK(compare_results(one, alike, 0.05).obstacles.empty());
}

TEST_CASE("merge: two cards of one model belong together, and a part without a GPU to both", "[results][merge]") {
  DeviceReport second = one_gpu();
  second.gpu->uuid = "GPU-2";
  second.noise.repeat_ratio = 0.05;
  DeviceReport none;
  const Merged merged =
      merge_results({part_of(six_rows(), 1, none), part_of(six_rows(), 2), part_of(six_rows(), 3, second)}, {});
  CHECK(merged.results.at("environment").at("gpu").at("uuid") == "GPU-1");
  CHECK(merged.results.at("environment").at("noise").at("repeat_ratio") == 0.05);  // of the loudest
}

TEST_CASE("merge: what is no results file is refused by name", "[results][merge]") {
  CHECK_THROWS_WITH(merge_results({{"a.json", Json::array()}}, {}), contains_text("a.json: is no results file"));
  CHECK_THROWS_WITH(merge_results({}, {}), contains_text("no part"));
}
