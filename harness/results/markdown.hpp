// Results files as Markdown tables: what a README shows, so that nobody types a number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/results/report_file.hpp"

namespace inferometer {

// The first line of every report.
inline constexpr std::string_view kReportHeading = "# Results";

// A heading, and a section for each file: question, provenance, one line a problem and one column a variant, and the
// reasons of all rows without a figure. Throws std::runtime_error naming the file when it is no results file, or one
// that no single table can show.
std::string markdown_report(const std::vector<NamedResults>& files);

}  // namespace inferometer
