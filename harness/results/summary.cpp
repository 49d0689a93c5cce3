#include "harness/results/summary.hpp"

#include <algorithm>
#include <map>

#include "harness/measure/statistics.hpp"
#include "harness/results/metrics.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

using ByVariant = std::map<std::string, std::vector<double>>;

std::string times(double ratio) { return formatted("%.2fx", ratio); }

std::string over_problems(std::size_t count) { return ", over " + std::to_string(count) + " problems"; }

std::vector<std::string> speedup_lines(const Json& rows, const std::string& baseline) {
  ByVariant speedups;
  for (const Json& row : rows) {
    const std::string variant = text_from(row.at("variant"));
    if (variant != baseline && row.at("speedup").is_number()) speedups[variant].push_back(row.at("speedup"));
  }
  std::vector<std::string> lines;
  for (auto& [variant, ratios] : speedups) {
    std::sort(ratios.begin(), ratios.end());
    lines.push_back(variant + ": " + times(ratios.front()) + " to " + times(ratios.back()) + " as fast as " + baseline +
                    ", median " + times(median(ratios)) + over_problems(ratios.size()));
  }
  return lines;
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
    std::vector<std::string> lines;
    for (auto& [variant, values] : metric_values(rows, metric)) {
      std::sort(values.begin(), values.end());
      lines.push_back(variant + ": " + metric_label(metric) + " " + shown_metric(metric, values.front()) + " to " +
                      shown_metric(metric, values.back()) + ", median " + shown_metric(metric, median(values)) +
                      over_problems(values.size()));
    }
    if (!lines.empty()) return lines;
  }
  return {};
}

}  // namespace

std::vector<std::string> summary_lines(const Json& results) {
  const std::string baseline = baseline_variant(results.at("config"));
  const Json& rows = results.at("rows");
  return baseline.empty() ? metric_lines(rows) : speedup_lines(rows, baseline);
}

std::string baseline_variant(const Json& config) {
  const auto baseline = config.find("baseline");
  if (baseline == config.end() || baseline->is_null()) return "";
  return text_from(baseline->is_string() ? *baseline : baseline->at("variant"));
}

}  // namespace inferometer
