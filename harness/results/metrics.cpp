#include "harness/results/metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/operator/registry.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

std::string shown_ratio(double value) { return formatted("%.1f %%", 100 * value); }

std::string shown_error(double value) { return formatted("%.1e", value); }

// Whole numbers and large ones in full, others with four figures.
std::string shown_number(double value) {
  const bool whole = value == std::floor(value) || std::fabs(value) >= 999.95;
  return formatted(whole && std::fabs(value) < 1e15 ? "%.0f" : "%#.4g", value);
}

std::string shown_per_second(double value) { return shown_number(value) + " /s"; }

struct Suffix {
  std::string_view text;
  bool in_label;
  std::string (*shown)(double);
};

constexpr std::array<Suffix, 5> kSuffixes{{{"_ratio", false, &shown_ratio},
                                           {"_rel_error", true, &shown_error},
                                           {"_ns", false, &shown_time},
                                           {"_bytes", false, &shown_bytes},
                                           {"_per_s", false, &shown_per_second}}};

const Suffix* suffix_of(std::string_view name) {
  const auto* found = std::find_if(kSuffixes.begin(), kSuffixes.end(),
                                   [&](const Suffix& suffix) { return name.ends_with(suffix.text); });
  return found == kSuffixes.end() ? nullptr : found;
}

const Metric* metric_in(const Record& record, std::string_view name) {
  const auto found = std::find_if(record.metrics.begin(), record.metrics.end(),
                                  [&](const Metric& metric) { return metric.name == name; });
  return found == record.metrics.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> headline_metrics(std::string_view operator_name) {
  constexpr std::size_t kMost = 5;  // more columns and no line of a table fits a screen
  const Operator* op = find_operator(operator_name);
  if (op == nullptr) return {};
  std::vector<std::string> names = op->headline_metrics;
  names.resize(std::min(names.size(), kMost));
  return names;
}

MetricColumns metric_columns(std::string_view operator_name, const std::vector<const Record*>& records) {
  MetricColumns columns;
  for (const std::string& name : headline_metrics(operator_name))
    if (std::any_of(records.begin(), records.end(),
                    [&](const Record* record) { return metric_in(*record, name) != nullptr; }))
      columns.names.push_back(name);
  columns.first = !columns.names.empty() && std::none_of(records.begin(), records.end(), [](const Record* record) {
    return record->work && (record->work->flops > 0 || record->work->bytes > 0);
  });
  return columns;
}

std::string metric_label(std::string_view name) {
  if (const Suffix* suffix = suffix_of(name); suffix != nullptr && !suffix->in_label)
    name.remove_suffix(suffix->text.size());
  std::string label(name);
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

std::string shown_metric(std::string_view name, double value) {
  const Suffix* suffix = suffix_of(name);
  return suffix != nullptr ? suffix->shown(value) : shown_number(value);
}

std::string shown_metric(const Record& record, std::string_view name) {
  const Metric* metric = metric_in(record, name);
  return metric != nullptr && std::isfinite(metric->value) ? shown_metric(name, metric->value) : "";
}

}  // namespace inferometer
