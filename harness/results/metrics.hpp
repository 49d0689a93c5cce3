// Metrics as people read them: which of them, under what name, in which unit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/results/record.hpp"

namespace inferometer {

// The first five headline metrics of the operator; none where this program does not know the operator.
std::vector<std::string> headline_metrics(std::string_view operator_name);

// The metrics of a table, a column each.
struct MetricColumns {
  std::vector<std::string> names;  // headline metrics that some record has
  // The metrics are the answer and stand before the time, of which there is no speed-up: no record has work that its
  // time could be set against.
  bool first = false;

  // Beside metrics the time is how long the row's run took: of a simulation, a method, or a server's whole trace.
  const char* time_label() const { return first ? "run time" : "time"; }
};
MetricColumns metric_columns(std::string_view operator_name, const std::vector<const Record*>& records);

// "kv token share of pool" for kv_token_share_of_pool_ratio: without the unit, which the value has.
std::string metric_label(std::string_view name);

// By the suffix of its name: "93.1 %", "1.2e-03", "81.2 us", "1.61 GB", "52.1 /s"; without one "120" or "23.46".
std::string shown_metric(std::string_view name, double value);

// The same of a record's metric; empty where it has none or one that is not finite.
std::string shown_metric(const Record& record, std::string_view name);

}  // namespace inferometer
