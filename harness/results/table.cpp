#include "harness/results/table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "harness/results/status.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

using Cells = std::vector<std::string>;

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string field_text(const Fields& fields, const std::string& name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
  return found == fields.end() ? "-" : to_string(found->second);
}

struct Line {
  Cells cells;  // of all columns but the last
  Status status = Status::ok;
  std::string reason;
};

class Table {
 public:
  Table(const Sweep& sweep, const RecordsById& records) : sweep_(sweep), records_(records) {
    sort_fields();
    header_ = {"variant"};
    for (const std::string& name : varying_) header_.push_back(name);
    for (const char* name : {"time", "+-", "rate", "ceiling", "speedup", "error"}) header_.emplace_back(name);
    for (const SweepRow& row : sweep.rows)
      if (const auto found = records.find(row.id); found != records.end()) add(row, found->second);
  }

  std::string text(bool colour, std::size_t columns) const {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      widths.push_back(columns_of(header_[i]));
      for (const Line& line : lines_) widths.back() = std::max(widths.back(), columns_of(line.cells[i]));
    }
    std::string text = sweep_.operator_name + fixed_ + "\n" + aligned(header_, widths) + "status\n";
    for (const Line& line : lines_) {
      const std::string begin = aligned(line.cells, widths);
      const std::string name(status_name(line.status));
      const std::size_t used = columns_of(begin) + name.size() + 2;
      constexpr std::size_t kLeastReason = 20;  // narrower than that, a reason says nothing: let it wrap
      const bool cut = columns >= used + kLeastReason;
      text += begin + coloured(name, line.status, colour);
      if (!line.reason.empty()) text += ": " + (cut ? shortened(line.reason, columns - used) : line.reason);
      text += '\n';
    }
    return text;
  }

 private:
  // Fields of the same value in all rows go above the table, the others become columns.
  void sort_fields() {
    std::vector<std::string> names;  // a few, whatever the number of rows
    for (const SweepRow& row : sweep_.rows)
      for (const auto& [name, value] : row.problem)
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    for (const std::string& name : names) {
      const std::string first = field_text(sweep_.rows.front().problem, name);
      if (std::any_of(sweep_.rows.begin(), sweep_.rows.end(),
                      [&](const SweepRow& row) { return field_text(row.problem, name) != first; }))
        varying_.push_back(name);
      else
        fixed_ += (fixed_.empty() ? ": " : ", ") + name + " " + first;
    }
  }

  void add(const SweepRow& row, const Record& record) {
    Line line{.cells = {record.variant}, .status = record.status, .reason = record.reason};
    for (const std::string& name : varying_) line.cells.push_back(field_text(row.problem, name));
    const auto cell = [&](bool known, const std::string& text) { line.cells.push_back(known ? text : "-"); };
    const auto& timing = record.timing;
    const auto& rates = record.rates;
    const auto against = speedup_in(records_, row);
    cell(timing.has_value(), timing ? shown_time(timing->headline_ns) : "");
    cell(timing.has_value(), timing ? formatted("%.1f %%", 100 * timing->isolated.ci_half_width_ratio) : "");
    const std::string rate = rates ? shown_rate(*rates) : "";
    cell(!rate.empty(), rate);
    const bool of_ceiling = rates && rates->fraction_of_ceiling;
    const bool warm = timing && headline_cache(*timing) == CacheMode::warm;  // memory is no bound then
    const std::string share = of_ceiling ? formatted("%.0f %% ", 100 * *rates->fraction_of_ceiling) + rates->limit
                                         : std::string(warm ? "warm cache" : "");
    cell(!share.empty(), share);
    cell(against.has_value(), against ? formatted("%.2fx", against->ratio) : "");
    cell(record.check.has_value(), record.check ? formatted("%.1e", record.check->rel_l2_error) : "");
    lines_.push_back(std::move(line));
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
  std::vector<std::string> varying_;
  std::string fixed_;
  Cells header_;
  std::vector<Line> lines_;
};

}  // namespace

std::string result_table(const Sweep& sweep, const RecordsById& records, bool colour, std::size_t columns) {
  return Table(sweep, records).text(colour, columns);
}

}  // namespace inferometer
