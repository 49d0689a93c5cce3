#include "harness/results/html/row_table.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>
#include <vector>

#include "harness/results/html/text.hpp"
#include "harness/results/shown_timing.hpp"
#include "harness/results/status.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

struct Cell {
  std::string text;             // "-" where there is nothing to show
  std::optional<double> value;  // by which the column is sorted; none: by its text
  bool number = false;          // to the right
};

struct Line {
  const Record* record = nullptr;
  std::vector<Cell> problem;
  std::vector<Cell> figures;
};

Cell figure(const std::optional<double>& value, const std::string& shown) {
  if (!value || !std::isfinite(*value) || shown.empty()) return {.text = "-", .value = std::nullopt, .number = true};
  return {.text = shown, .value = value, .number = true};
}

Cell field(const Record& record, const std::string& name) {
  const Value* value = field_in(record.problem, name);
  if (value == nullptr) return {.text = "-", .value = std::nullopt};
  Cell cell{.text = to_string(*value), .value = std::nullopt};
  if (const auto* whole = std::get_if<std::int64_t>(value)) cell.value = static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(value)) cell.value = *real;
  cell.number = cell.value.has_value();
  return cell;
}

Cell metric(const Record& record, const std::string& name) {
  const auto found =
      std::find_if(record.metrics.begin(), record.metrics.end(), [&](const Metric& one) { return one.name == name; });
  return figure(found == record.metrics.end() ? std::nullopt : std::optional(found->value), shown_metric(record, name));
}

void add_time(Line& line, const Record& record) {
  const auto& timing = record.timing;
  const auto uncertainty = timing ? timing->isolated.ci_half_width_ratio : std::nullopt;
  line.figures.push_back(figure(timing ? std::optional(timing->headline_ns) : std::nullopt,
                                timing ? shown_time(timing->headline_ns) : ""));
  line.figures.push_back(figure(uncertainty, uncertainty ? formatted("%.1f %%", 100 * *uncertainty) : ""));
}

void add_rates(Line& line, const ReportRow& row) {
  const auto& rates = row.record.rates;
  const auto rate = !rates ? std::nullopt : rates->limit == "compute" ? rates->flops_per_s : rates->bytes_per_s;
  line.figures.push_back(figure(rate, rates ? shown_rate(*rates) : ""));
  const auto share = rates ? rates->fraction_of_ceiling : std::nullopt;
  const std::string ceiling = shown_ceiling(row.record);
  line.figures.push_back(share || ceiling.empty() ? figure(share, ceiling)
                                                  : Cell{.text = ceiling, .value = std::nullopt, .number = true});
  line.figures.push_back(figure(row.speedup, row.speedup ? formatted("%.2f\u00d7", *row.speedup) : ""));
}

void add_checks(Line& line, const Record& record) {
  const auto peak = record.memory_bytes.find("peak");
  const auto bytes = peak == record.memory_bytes.end() ? std::nullopt : std::optional<double>(peak->second);
  line.figures.push_back(figure(bytes, bytes ? shown_bytes(*bytes) : ""));
  const auto error = record.check ? std::optional(record.check->rel_l2_error) : std::nullopt;
  line.figures.push_back(figure(error, error ? formatted("%.1e", *error) : ""));
}

Line line_of(const ReportRow& row, const ReportFile& file) {
  Line line{.record = &row.record, .problem = {}, .figures = {}};
  for (const std::string& name : file.fields.varying) line.problem.push_back(field(row.record, name));
  const auto add_metrics = [&] {
    for (const std::string& name : file.metrics.names) line.figures.push_back(metric(row.record, name));
  };
  if (file.metrics.first) add_metrics();
  add_time(line, row.record);
  if (!file.metrics.first) add_rates(line, row);
  if (!file.metrics.first) add_metrics();
  add_checks(line, row.record);
  return line;
}

std::vector<std::string> header_of(const ReportFile& file) {
  std::vector<std::string> names{"status", "variant"};
  names.insert(names.end(), file.fields.varying.begin(), file.fields.varying.end());
  const auto add_metrics = [&] {
    for (const std::string& name : file.metrics.names) names.push_back(metric_label(name));
  };
  if (file.metrics.first) add_metrics();
  names.insert(names.end(), {file.metrics.time_label(), "\u00b1"});
  if (!file.metrics.first) names.insert(names.end(), {"rate", "of ceiling", "speed\u2011up"});
  if (!file.metrics.first) add_metrics();
  names.insert(names.end(), {"peak memory", "error"});
  return names;
}

std::string html_cell(const Cell& cell) {
  std::string attributes;
  if (cell.number) attributes = "class=\"n\"";
  if (cell.value) attributes += formatted(" data-v=\"%.17g\"", *cell.value);
  return html_element("td", attributes, cell.text);
}

// Shapes, not colours alone, tell statuses apart.
std::string_view sign(Status status) {
  if (status == Status::ok) return "\u2713";
  if (status == Status::unsupported) return "\u2013";
  return status == Status::suspect ? "?" : "\u2717";
}

std::string html_line(const Line& line) {
  const Record& record = *line.record;
  const std::string status(status_name(record.status));
  std::string text = "<tr data-id=\"" + html_text(record.id) + "\"><td><span class=\"status " + status + "\">";
  text.append(sign(record.status)).append(" ").append(html_text(shown_status(record))).append("</span></td>");
  text += "<th scope=\"row\">" + html_text(record.variant) + "</th>";
  for (const Cell& cell : line.problem) text += html_cell(cell);
  const bool empty =
      std::none_of(line.figures.begin(), line.figures.end(), [](const Cell& cell) { return cell.value; });
  if (empty || !has_timing(record.status)) {
    const std::string span = std::to_string(line.figures.size());
    text +=
        html_element("td", "class=\"reason\" colspan=\"" + span + "\"", record.reason.empty() ? "-" : record.reason);
  } else {
    for (const Cell& cell : line.figures) text += html_cell(cell);
  }
  return text + "</tr>\n";
}

}  // namespace

std::string row_table(const ReportFile& file) {
  std::string text = "<div class=\"rows\" tabindex=\"0\" role=\"region\" aria-label=\"All rows\"><table>\n<thead><tr>";
  for (const std::string& name : header_of(file)) text += html_element("th", "scope=\"col\"", name);
  text += "</tr></thead>\n<tbody>\n";
  for (const ReportRow& row : file.rows) text += html_line(line_of(row, file));
  return text + "</tbody></table></div>\n";
}

}  // namespace inferometer
