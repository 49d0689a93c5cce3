#include "harness/results/results_file.hpp"

#include <fstream>
#include <string_view>

#include "harness/results/record_json.hpp"
#include "harness/results/row_commands.hpp"

namespace inferometer {
namespace {

constexpr std::string_view kAnySchema = "inferometer.results/";

// The time of `timing` by the estimator that both sides have, where their headlines come from different ones: an
// isolated time holds the launch, an amortized one does not.
double comparable_ns(const Timing& timing, const Timing& other) {
  if (timing.headline == other.headline) return timing.headline_ns;
  return timing.amortized && other.amortized ? timing.amortized->mean_ns : timing.isolated.median_ns;
}

// An amortized time is a mean without an interval of its own: the isolated one's relative width stands for it.
std::optional<Interval> interval_of(double ratio, const IsolatedTiming& one, const IsolatedTiming& other) {
  if (!one.ci_low_ns || !one.ci_high_ns || !other.ci_low_ns || !other.ci_high_ns) return std::nullopt;
  if (!(*one.ci_low_ns > 0 && other.median_ns > 0)) return std::nullopt;
  const double scale = ratio * one.median_ns / other.median_ns;
  return Interval{.low = scale * *other.ci_low_ns / *one.ci_high_ns,
                  .high = scale * *other.ci_high_ns / *one.ci_low_ns};
}

}  // namespace

std::optional<Speedup> speedup(const Record& row, const Record& baseline) {
  if (row.status != Status::ok || baseline.status != Status::ok || !row.timing || !baseline.timing) return std::nullopt;
  if (row.id == baseline.id) return Speedup{};
  const IsolatedTiming& one = row.timing->isolated;
  const IsolatedTiming& other = baseline.timing->isolated;
  const double ours_ns = comparable_ns(*row.timing, *baseline.timing);
  const double theirs_ns = comparable_ns(*baseline.timing, *row.timing);
  if (!(ours_ns > 0 && theirs_ns > 0)) return std::nullopt;
  const double ratio = theirs_ns / ours_ns;
  return Speedup{.ratio = ratio, .interval = interval_of(ratio, one, other)};
}

std::optional<Speedup> speedup_in(const RecordsById& records, const SweepRow& row) {
  const auto own = records.find(row.id);
  const auto baseline = records.find(row.baseline_id);
  if (own == records.end() || baseline == records.end()) return std::nullopt;
  return speedup(own->second, baseline->second);
}

Json results_json(const Sweep& sweep, const RunInfo& run, const RecordsById& records) {
  Json rows = Json::array();
  for (const SweepRow& row : sweep.rows) {
    const auto found = records.find(row.id);
    if (found == records.end()) continue;
    Json json = record_json(found->second);
    const auto against = speedup_in(records, row);
    json["speedup"] = against ? Json(against->ratio) : Json(nullptr);
    const auto interval = against ? against->interval : std::nullopt;
    json["speedup_ci"] = interval ? Json::array({interval->low, interval->high}) : Json(nullptr);
    json["reproduce"] = reproduce_line(sweep.path, row.id, run.argv);
    json["profile"] = profile_line(text_from(json["reproduce"]));
    rows.push_back(std::move(json));
  }
  return {{"schema", kResultsSchema},
          {"name", sweep.name},
          {"started_at", run.started_at},
          {"finished_at", run.finished_at},
          {"config", Json::parse(sweep.config_text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true)},
          {"config_sha256", sweep.config_sha256},
          {"seed", run.seed},
          {"environment", environment_json(run.host, run.devices, run.argv)},
          {"rows", std::move(rows)}};
}

std::optional<std::size_t> rows_in_results_file(const std::string& path) {
  std::string key;  // of the outermost object
  std::size_t rows = 0;
  // Rows are counted and dropped: a file of many is much larger than its text once it is parsed.
  const auto keep = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) key = parsed.get<std::string>();
    if (depth == 2 && event == Json::parse_event_t::object_start && key == "rows") ++rows;
    return depth < 2;
  };
  std::ifstream file(path, std::ios::binary);
  const Json json = Json::parse(file, keep, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("schema") || !json.at("schema").is_string()) return std::nullopt;
  if (!json.at("schema").get<std::string>().starts_with(kAnySchema)) return std::nullopt;
  return rows;
}

}  // namespace inferometer
