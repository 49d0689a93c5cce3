#include "harness/results/html/section.hpp"

#include <map>

#include "harness/operator/fields.hpp"
#include "harness/results/cache_warnings.hpp"
#include "harness/results/html/answers.hpp"
#include "harness/results/html/provenance.hpp"
#include "harness/results/html/row_table.hpp"
#include "harness/results/html/text.hpp"
#include "harness/results/status.hpp"

namespace inferometer {
namespace {

// "128 rows: 120 ok, 8 unsupported": failures are seen before any figure is.
std::string counts(const ReportFile& file) {
  std::map<Status, int> by_status;
  for (const ReportRow& row : file.rows) ++by_status[row.record.status];
  std::string text = std::to_string(file.rows.size()) + (file.rows.size() == 1 ? " row" : " rows");
  for (const auto& [status, count] : by_status)
    text.append(&status == &by_status.begin()->first ? ": " : ", ")
        .append(std::to_string(count))
        .append(" ")
        .append(status_name(status));
  return text;
}

std::string shared_fields(const ReportFile& file) {
  std::string text;
  for (const std::string& name : file.fields.fixed)
    if (const Value* value = field_in(file.rows.front().record.problem, name); value != nullptr)
      text += "<span class=\"field\">" + html_element("i", "", name) + " " + html_text(to_string(*value)) + "</span> ";
  return text.empty() ? text : "<p class=\"fields\">" + text + "</p>\n";
}

// Each reason once, with how many rows it stands for.
std::string failures(const ReportFile& file) {
  std::map<std::string, int> reasons;
  for (const ReportRow& row : file.rows)
    if (row.record.status != Status::ok)
      ++reasons[row.record.variant + " " + std::string(status_name(row.record.status)) + ": " + row.record.reason];
  if (reasons.empty()) return {};
  std::string text = "<div class=\"failures\">\n<h3>Rows without an answer</h3>\n<ul>\n";
  for (const auto& [reason, count] : reasons)
    text += html_element("li", "", reason + " (" + std::to_string(count) + (count == 1 ? " row)" : " rows)")) + "\n";
  return text + "</ul>\n</div>\n";
}

}  // namespace

std::string report_section(const std::string& id, const ReportFile& file, const NamedResults& source) {
  std::string text = "<section id=\"" + id + "\">\n" + html_element("h2", "", file.question) + "\n";
  text += html_element("p", "class=\"provenance\"", file.provenance + "; " + counts(file)) + "\n";
  for (const std::string& warning : cache_warnings(source.json))
    text += html_element("p", "class=\"warning\"", "Warning: " + warning + ".") + "\n";
  text += answers(file, source.json) + shared_fields(file) + failures(file);
  text += "<div class=\"filter\" hidden></div>\n<div class=\"charts\"></div>\n";
  if (!file.rows.empty()) text += row_table(file);
  return text + provenance_details(source) + "</section>\n";
}

}  // namespace inferometer
