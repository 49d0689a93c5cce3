// Results files as one HTML page that needs nothing else: no network, no other file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/results/report_file.hpp"

namespace inferometer {

// The first line of every page.
inline constexpr std::string_view kHtmlReportHeading = "<!doctype html><!-- inferometer report -->";

struct PageParts {
  std::string_view style;
  std::string_view script;
  std::string_view chart_library;  // empty: the page says so, and shows the tables
};
PageParts built_in_parts();

// The questions and their answers, then a section for each file: charts, all rows, where the figures come from. What it
// says is there without scripts too; they draw the charts and sort and filter the rows. Throws as read_report_file.
std::string html_report(const std::vector<NamedResults>& files, const PageParts& parts);

}  // namespace inferometer
