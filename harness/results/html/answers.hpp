// What a results file answers, in a line for each variant, with a picture of where its problems lie.
#pragma once

#include <string>

#include "harness/results/report_file.hpp"

namespace inferometer {

// A list of the summary's lines; empty where it has none.
std::string answer_lines(const ReportFile& file, const Json& results);

// For each variant with speed-ups over another one: the median, a strip with a dot for each problem on a logarithmic
// scale, common to all variants, and the range. Else as answer_lines.
std::string answers(const ReportFile& file, const Json& results);

}  // namespace inferometer
