#include "harness/results/table.hpp"

#include <algorithm>
#include <string_view>

#include "harness/results/metrics.hpp"
#include "harness/results/shown_fields.hpp"
#include "harness/results/shown_timing.hpp"
#include "harness/results/status.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

using Cells = std::vector<std::string>;

std::string field_text(const Fields& fields, const std::string& name) {
  const Value* value = field_in(fields, name);
  return value == nullptr ? "-" : short_text(*value);
}

struct Line {
  Cells cells;  // of all columns but the last
  Status status = Status::ok;
  std::string status_text;
  std::string reason;
};

class Table {
 public:
  Table(const Sweep& sweep, const RecordsById& records) : sweep_(sweep), records_(records) {
    std::vector<const Fields*> problems;
    std::vector<const Record*> measured;
    for (const SweepRow& row : sweep.rows) {
      problems.push_back(&row.problem);
      if (const auto found = records.find(row.id); found != records.end()) measured.push_back(&found->second);
    }
    const Json config = Json::parse(sweep.config_text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
    fields_ = shown_fields(config, sweep.operator_name, problems);
    metrics_ = metric_columns(sweep.operator_name, measured);
    name_columns();
    for (const SweepRow& row : sweep.rows)
      if (const auto found = records.find(row.id); found != records.end()) add(row, found->second);
    drop_if_empty("speedup");
    if (metrics_.first)
      for (const char* name : {"rate", "ceiling"}) drop_if_empty(name);
  }

  std::string text(bool colour, std::size_t columns) const {
    const std::vector<Cells> header = header_lines();
    std::vector<std::size_t> widths(header_.size());
    for (std::size_t i = 0; i < header_.size(); ++i) {
      for (const Cells& line : header) widths[i] = std::max(widths[i], columns_of(line[i]));
      for (const Line& line : lines_) widths[i] = std::max(widths[i], columns_of(line.cells[i]));
    }
    std::string text = heading();
    for (std::size_t i = 0; i + 1 < header.size(); ++i) {
      const std::string line = aligned(header[i], widths);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    text += aligned(header.back(), widths) + "status\n";
    for (const Line& line : lines_) {
      const std::string begin = aligned(line.cells, widths);
      const std::size_t used = columns_of(begin) + line.status_text.size() + 2;
      constexpr std::size_t kLeastReason = 20;  // narrower than that, a reason says nothing: let it wrap
      const bool cut = columns >= used + kLeastReason;
      text += begin + coloured(line.status_text, line.status, colour);
      if (!line.reason.empty()) text += ": " + (cut ? shortened(line.reason, columns - used) : line.reason);
      text += '\n';
    }
    return text;
  }

 private:
  void name_columns() {
    header_ = {"variant"};
    header_.insert(header_.end(), fields_.varying.begin(), fields_.varying.end());
    if (metrics_.first) name_metrics();
    header_.insert(header_.end(), {metrics_.time_label(), "+-", "rate", "ceiling", "speedup"});
    if (!metrics_.first) name_metrics();
    header_.emplace_back("error");
  }

  void name_metrics() {
    for (const std::string& name : metrics_.names) header_.push_back(metric_label(name));
  }

  void add(const SweepRow& row, const Record& record) {
    Line line{.cells = {record.variant},
              .status = record.status,
              .status_text = shown_status(record),
              .reason = record.reason};
    for (const std::string& name : fields_.varying) line.cells.push_back(field_text(row.problem, name));
    if (metrics_.first) add_metrics(line, record);
    add_time(line, row, record);
    if (!metrics_.first) add_metrics(line, record);
    const auto& check = record.check;
    add_cell(line, check ? formatted("%.1e", check->rel_l2_error) : "");
    lines_.push_back(std::move(line));
  }

  void add_metrics(Line& line, const Record& record) const {
    for (const std::string& name : metrics_.names) add_cell(line, shown_metric(record, name));
  }

  void add_time(Line& line, const SweepRow& row, const Record& record) const {
    const auto& timing = record.timing;
    const auto& rates = record.rates;
    const auto against = metrics_.first ? std::nullopt : speedup_in(records_, row);
    add_cell(line, timing ? shown_time(timing->headline_ns) : "");
    const auto uncertainty = timing ? timing->isolated.ci_half_width_ratio : std::nullopt;
    add_cell(line, uncertainty ? formatted("%.1f %%", 100 * *uncertainty) : "");
    add_cell(line, rates ? shown_rate(*rates) : "");
    add_cell(line, metrics_.first ? "" : shown_ceiling(record));
    add_cell(line, against ? formatted("%.2fx", against->ratio) : "");
  }

  static void add_cell(Line& line, const std::string& text) { line.cells.push_back(text.empty() ? "-" : text); }

  void drop_if_empty(std::string_view name) {
    const auto at = std::find(header_.begin(), header_.end(), name) - header_.begin();
    const auto i = static_cast<std::size_t>(at);
    if (std::any_of(lines_.begin(), lines_.end(), [&](const Line& line) { return line.cells[i] != "-"; })) return;
    header_.erase(header_.begin() + at);
    for (Line& line : lines_) line.cells.erase(line.cells.begin() + at);
  }

  // The operator, and what all rows share.
  std::string heading() const {
    std::string text = sweep_.operator_name;
    for (const std::string& name : fields_.fixed) {
      text +=
          (&name == &fields_.fixed.front() ? ": " : ", ") + name + " " + field_text(sweep_.rows.front().problem, name);
    }
    return text + "\n";
  }

  // The names of the columns, long ones in several lines; the last line has them all.
  std::vector<Cells> header_lines() const {
    constexpr std::size_t kColumns = 14;
    std::vector<Cells> names;
    std::size_t height = 1;
    for (const std::string& name : header_) {
      names.push_back(wrapped(name, kColumns));
      height = std::max(height, names.back().size());
    }
    std::vector<Cells> lines(height, Cells(header_.size()));
    for (std::size_t i = 0; i < names.size(); ++i)
      for (std::size_t j = 0; j < names[i].size(); ++j) lines[height - names[i].size() + j][i] = names[i][j];
    return lines;
  }

  // Names to the left, values to the right.
  std::string aligned(const Cells& cells, const std::vector<std::size_t>& widths) const {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string blanks(widths[i] - columns_of(cells[i]), ' ');
      text += (i == 0 ? cells[i] + blanks : blanks + cells[i]) + "  ";
    }
    return text;
  }

  const Sweep& sweep_;
  const RecordsById& records_;
  ShownFields fields_;
  MetricColumns metrics_;
  Cells header_;
  std::vector<Line> lines_;
};

}  // namespace

std::string result_table(const Sweep& sweep, const RecordsById& records, bool colour, std::size_t columns) {
  return Table(sweep, records).text(colour, columns);
}

}  // namespace inferometer
