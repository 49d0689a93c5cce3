// The rows of one results file as a Markdown table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/results/metrics.hpp"
#include "harness/results/record.hpp"

namespace inferometer {

struct MarkdownRow {
  Record record;
  std::optional<double> speedup;
};

// One line a problem and one column a variant; with metrics one line a row, with a column for each of them. `varying`
// are the fields that tell problems apart.
std::string markdown_table(const std::vector<MarkdownRow>& rows, const std::vector<std::string>& varying,
                           const MetricColumns& metrics);

// Whether the row's cell says, in bold, how much faster than the baseline it is.
bool is_speedup_shown(const MarkdownRow& row, const MetricColumns& metrics);

// The field's value, ready for a cell; empty where the row lacks the field (another version wrote it).
std::string markdown_field(const MarkdownRow& row, const std::string& name);

}  // namespace inferometer
