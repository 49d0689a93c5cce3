// One results file as a section of the page.
#pragma once

#include <string>

#include "harness/results/report_file.hpp"

namespace inferometer {

// Question, answer, an empty place for the charts, all rows, environment and commands. `id` is its anchor.
std::string report_section(const std::string& id, const ReportFile& file, const NamedResults& source);

}  // namespace inferometer
