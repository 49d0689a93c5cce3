// The rows of one results file as a Markdown table.
#pragma once

#include <string>
#include <vector>

#include "harness/results/report_file.hpp"

namespace inferometer {

// One line a problem and one column a variant; with metrics one line a row, with a column for each of them. `varying`
// are the fields that tell problems apart.
std::string markdown_table(const std::vector<ReportRow>& rows, const std::vector<std::string>& varying,
                           const MetricColumns& metrics);

// Whether the row's cell says, in bold, how much faster than the baseline it is.
bool is_speedup_shown(const ReportRow& row, const MetricColumns& metrics);

// "warm, 3 samples, power_limited": what the row's cell says behind the time; empty where nothing was noted.
std::string timing_notes(const ReportRow& row);

// The field's value, ready for a cell; empty where the row lacks the field (another version wrote it).
std::string markdown_field(const ReportRow& row, const std::string& name);

}  // namespace inferometer
