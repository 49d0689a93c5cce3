#include "harness/results/markdown_table.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "harness/results/markdown_text.hpp"
#include "harness/results/shown_fields.hpp"
#include "harness/results/shown_timing.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

using Cells = std::vector<std::string>;

// Time, rate, speed-up and what makes them less sure, of a row that is ok; the status of another.
std::string figure(const ReportRow& row, const MetricColumns& metrics) {
  const Record& record = row.record;
  if (record.status != Status::ok || !record.timing) return markdown_cell(shown_status(record));
  std::string text = shown_time(record.timing->headline_ns);
  if (record.rates) {
    if (const std::string rate = shown_rate(*record.rates); !rate.empty()) text += ", " + rate;
  }
  if (is_speedup_shown(row, metrics)) text += formatted(", **%.2fx**", *row.speedup);
  const std::string notes = timing_notes(row);
  return notes.empty() ? text : text + " (" + markdown_cell(notes) + ")";
}

Cells problem_cells(const ReportRow& row, const std::vector<std::string>& varying) {
  Cells cells;
  for (const std::string& name : varying) cells.push_back(markdown_field(row, name));
  return cells;
}

std::string line_for_each_problem(const std::vector<ReportRow>& rows, const std::vector<std::string>& varying,
                                  const MetricColumns& metrics) {
  Cells variants;
  std::vector<Cells> problems;
  std::map<std::pair<Cells, std::string>, const ReportRow*> by_place;  // (problem, variant)
  for (const ReportRow& row : rows) {
    const std::string& variant = row.record.variant;
    Cells problem = problem_cells(row, varying);
    if (std::find(variants.begin(), variants.end(), variant) == variants.end()) variants.push_back(variant);
    if (std::find(problems.begin(), problems.end(), problem) == problems.end()) problems.push_back(problem);
    by_place[{std::move(problem), variant}] = &row;
  }
  Cells names = varying;
  names.insert(names.end(), variants.begin(), variants.end());
  std::string text = markdown_table_header(names);
  for (const Cells& problem : problems) {
    Cells cells = problem;
    for (const std::string& variant : variants) {
      const auto found = by_place.find({problem, variant});
      cells.push_back(found == by_place.end() ? "" : figure(*found->second, metrics));
    }
    text += markdown_table_line(cells);
  }
  return text;
}

std::string line_for_each_row(const std::vector<ReportRow>& rows, const std::vector<std::string>& varying,
                              const MetricColumns& metrics) {
  Cells names = varying;
  names.emplace_back("variant");
  if (!metrics.first) names.emplace_back(metrics.time_label());
  for (const std::string& name : metrics.names) names.push_back(metric_label(name));
  if (metrics.first) names.emplace_back(metrics.time_label());
  std::string text = markdown_table_header(names);
  for (const ReportRow& row : rows) {
    Cells cells = problem_cells(row, varying);
    cells.push_back(markdown_cell(row.record.variant));
    if (!metrics.first) cells.push_back(figure(row, metrics));
    for (const std::string& name : metrics.names) cells.push_back(shown_metric(row.record, name));
    if (metrics.first) cells.push_back(figure(row, metrics));
    text += markdown_table_line(cells);
  }
  return text;
}

}  // namespace

std::string markdown_table(const std::vector<ReportRow>& rows, const std::vector<std::string>& varying,
                           const MetricColumns& metrics) {
  return metrics.names.empty() ? line_for_each_problem(rows, varying, metrics)
                               : line_for_each_row(rows, varying, metrics);
}

bool is_speedup_shown(const ReportRow& row, const MetricColumns& metrics) {
  return !metrics.first && row.record.status == Status::ok && row.record.timing && row.speedup && *row.speedup != 1;
}

std::string timing_notes(const ReportRow& row) {
  if (!row.record.timing) return {};
  const std::string flags = shown_flags(row.record);
  if (!is_warm_in_cold_sweep(*row.record.timing)) return flags;
  return flags.empty() ? "warm" : "warm, " + flags;
}

std::string markdown_field(const ReportRow& row, const std::string& name) {
  const Value* value = field_in(row.record.problem, name);
  return value == nullptr ? "" : markdown_cell(*value);
}

}  // namespace inferometer
