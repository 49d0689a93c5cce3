#include "harness/results/markdown.hpp"

#include <algorithm>
#include <map>

#include "harness/results/cache_warnings.hpp"
#include "harness/results/markdown_table.hpp"
#include "harness/results/markdown_text.hpp"
#include "harness/results/status.hpp"
#include "harness/results/summary.hpp"

namespace inferometer {
namespace {

// "batch 1, dtype f16. Bold: speed-up over cuda.materialized.", or what of it there is to say.
std::string heading_of(const ReportFile& file) {
  std::string text;
  for (const std::string& name : file.fields.fixed)
    text += (text.empty() ? "" : ", ") + markdown_cell(name) + " " + markdown_field(file.rows.front(), name);
  if (!text.empty()) text += ".";
  const bool bold = std::any_of(file.rows.begin(), file.rows.end(),
                                [&](const ReportRow& row) { return is_speedup_shown(row, file.metrics); });
  if (bold && !file.baseline.empty())
    text += (text.empty() ? "" : " ") + ("Bold: speed-up over " + markdown_cell(file.baseline)) + ".";
  if (std::any_of(file.rows.begin(), file.rows.end(), [](const ReportRow& row) { return !timing_notes(row).empty(); }))
    text += std::string(text.empty() ? "" : " ") + "In brackets: what was noted while a row was timed.";
  return text;
}

// Why rows have no figure: each reason once, with how many rows it stands for.
std::string reasons_of(const ReportFile& file) {
  std::map<std::string, int> reasons;
  for (const ReportRow& row : file.rows)
    if (row.record.status != Status::ok)
      ++reasons[markdown_cell(row.record.variant) + " " + markdown_cell(std::string(status_name(row.record.status))) +
                ": " + markdown_cell(row.record.reason)];
  std::string text;
  for (const auto& [reason, count] : reasons)
    text += "- " + reason + " (" + std::to_string(count) + (count == 1 ? " row)\n" : " rows)\n");
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string markdown_report(const std::vector<NamedResults>& files) {
  std::string text =
      std::string(kReportHeading) +
      "\n\nMade by `./inferometer report` from the files named under each table; not edited by hand.\n\n";
  for (const NamedResults& source : files) {
    const ReportFile file = read_report_file(source);
    text += "## " + markdown_cell(file.question) + "\n\n";
    if (const std::string heading = heading_of(file); !heading.empty()) text += heading + "\n\n";
    for (const std::string& warning : cache_warnings(source.json))
      text += "**Warning:** " + markdown_cell(warning) + ".\n\n";
    for (const std::string& line : summary_lines(source.json)) text += "- " + markdown_cell(line) + "\n";
    text += "\n";
    if (!file.rows.empty())
      text += markdown_table(file.rows, file.fields.varying, file.metrics) + reasons_of(file) + "\n";
    text += "Source: [" + markdown_cell(source.path) + "](" + markdown_link_target(source.path) + "); " +
            markdown_cell(file.provenance) + ".\n\n";
  }
  return text;
}

}  // namespace inferometer
