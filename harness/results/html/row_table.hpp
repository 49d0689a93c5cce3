// All rows of a results file as an HTML table, those without a figure too.
#pragma once

#include <string>

#include "harness/results/report_file.hpp"

namespace inferometer {

// Columns as in the table of `run`. A cell with a number carries it in `data-v`, by which scripts sort; the reason of a
// row without figures stands in their place.
std::string row_table(const ReportFile& file);

}  // namespace inferometer
