#include "harness/results/summary.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "harness/measure/statistics.hpp"
#include "harness/results/metrics.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

using ByVariant = std::map<std::string, std::vector<double>>;

// "<variant>: <before><least> to <greatest><after>, median <median>, over <count> problems"; of a single value
// "<variant>: <before><value><after>, over 1 problem".
std::vector<std::string> lines_of(const ByVariant& values_by_variant, const std::string& before,
                                  const std::string& after, const std::function<std::string(double)>& shown) {
  std::vector<std::string> lines;
  for (const auto& [variant, unsorted] : values_by_variant) {
    const std::vector<double> values = sorted_copy(unsorted);
    std::string line = variant;
    line.append(": ").append(before).append(shown(values.front()));
    if (values.size() == 1) {
      line.append(after).append(", over 1 problem");
    } else {
      line.append(" to ").append(shown(values.back())).append(after);
      line.append(", median ").append(shown(median(values)));
      line.append(", over ").append(std::to_string(values.size())).append(" problems");
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> speedup_lines(const Json& rows, const std::string& baseline) {
  ByVariant speedups;
  for (const Json& row : rows) {
    const std::string variant = text_from(row.at("variant"));
    if (variant != baseline && row.at("speedup").is_number()) speedups[variant].push_back(row.at("speedup"));
  }
  return lines_of(speedups, "", " as fast as " + baseline, [](double ratio) { return formatted("%.2fx", ratio); });
}

ByVariant metric_values(const Json& rows, const std::string& metric) {
  ByVariant values;
  for (const Json& row : rows) {
    const Json& metrics = row.at("metrics");
    const auto found = metrics.find(metric);
    if (found != metrics.end() && found->is_number()) values[text_from(row.at("variant"))].push_back(*found);
  }
  return values;
}

std::vector<std::string> metric_lines(const Json& rows) {
  if (rows.empty()) return {};
  for (const std::string& metric : headline_metrics(text_from(rows.front().at("operator")))) {
    std::vector<std::string> lines = lines_of(metric_values(rows, metric), metric_label(metric) + " ", "",
                                              [&](double value) { return shown_metric(metric, value); });
    if (!lines.empty()) return lines;
  }
  return {};
}

bool has_work(const Json& row) {
  const Json& work = row.at("work");
  return !work.is_null() && (real_from(work.at("flops")) > 0 || real_from(work.at("bytes")) > 0);
}

}  // namespace

std::vector<std::string> summary_lines(const Json& results) {
  const std::string baseline = baseline_variant(results.at("config"));
  const Json& rows = results.at("rows");
  const bool timed = std::any_of(rows.begin(), rows.end(), has_work);
  return baseline.empty() || !timed ? metric_lines(rows) : speedup_lines(rows, baseline);
}

std::string baseline_variant(const Json& config) {
  const auto baseline = config.find("baseline");
  if (baseline == config.end() || baseline->is_null()) return "";
  return text_from(baseline->is_string() ? *baseline : baseline->at("variant"));
}

}  // namespace inferometer
