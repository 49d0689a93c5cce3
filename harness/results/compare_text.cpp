#include "harness/results/compare_text.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "harness/results/aligned.hpp"
#include "harness/results/markdown_text.hpp"
#include "harness/results/shown_fields.hpp"
#include "harness/results/status.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

using Cells = std::vector<std::string>;

// What a reader must act on comes first.
constexpr std::array kOrder{Verdict::slower, Verdict::failed, Verdict::missing,    Verdict::noisy,
                            Verdict::faster, Verdict::added,  Verdict::other_host, Verdict::same};

// The sentences above the table and the counts below it say all that there is to say.
bool said_in_counts(const ComparedRow& row) {
  return row.reason.empty() && (row.verdict == Verdict::same || row.verdict == Verdict::other_host);
}

const Record& any_record(const ComparedRow& row) { return row.now ? *row.now : *row.base; }

std::string problem_text(const Record& record, const std::vector<std::string>& varying) {
  std::string text;
  for (const std::string& name : varying)
    if (const Value* value = field_in(record.problem, name))
      text += (text.empty() ? "" : ", ") + name + " " + short_text(*value);
  return text;
}

std::string time_or_status(const std::optional<Record>& record, double ns) {
  if (!record) return "-";
  return ns > 0 ? shown_time(ns) : std::string(status_name(record->status));
}

double own_time(const std::optional<Record>& record) {
  return record && record->timing ? record->timing->headline_ns : 0;
}

// Of both, where a row stands against another variant.
std::string variant_text(const ComparedRow& row) {
  const std::string& variant = any_record(row).variant;
  return row.base && row.base->variant != variant ? variant + " over " + row.base->variant : variant;
}

Cells cells_of(const ComparedRow& row, const std::vector<std::string>& varying) {
  const Record& record = any_record(row);
  const bool compared = row.ratio.has_value();
  std::string ratio = compared ? formatted("%.3f", *row.ratio) : "";
  if (row.ratio_low) ratio += formatted(" (%.3f", *row.ratio_low) + formatted(" to %.3f)", *row.ratio_high);
  return {std::string(verdict_name(row.verdict)),
          variant_text(row),
          problem_text(record, varying),
          time_or_status(row.base, compared ? row.base_ns : own_time(row.base)),
          time_or_status(row.now, compared ? row.now_ns : own_time(row.now)),
          ratio,
          row.reason};
}

// Takes reasons that several lines share out of them: each once, with how many rows it stands for, and its number in
// the lines.
std::vector<std::string> shared_reasons(std::vector<Cells>& lines) {
  std::map<std::string, int> counts;
  for (const Cells& line : lines)
    if (!line.back().empty()) ++counts[line.back()];
  std::vector<std::string> shared;
  std::map<std::string, std::string> numbers;
  for (Cells& line : lines) {
    const auto count = counts.find(line.back());
    if (count == counts.end() || count->second < 2) continue;
    std::string& number = numbers[line.back()];
    if (number.empty()) {
      number = "(" + std::to_string(numbers.size()) + ")";
      shared.push_back(number + " " + line.back() + " (" + std::to_string(count->second) + " rows)");
    }
    line.back() = number;
  }
  return shared;
}

// "Base: commit 0123456789; new: commit 9876543210; their kernels differ: kernels_sha256 012345678901 and
// 109876543210."
std::string programs(const ComparedProgram& base, const ComparedProgram& now) {
  constexpr std::size_t kDigits = 12;
  if (base.commit.empty() && now.commit.empty()) return {};
  const auto commit = [](const ComparedProgram& program) {
    return program.commit.empty() ? "unknown" : program.commit;
  };
  std::string text = "Base: commit " + commit(base) + "; new: commit " + commit(now);
  if (!base.kernels_sha256.empty() && !now.kernels_sha256.empty() && base.kernels_sha256 != now.kernels_sha256)
    text += "; their kernels differ: kernels_sha256 " + base.kernels_sha256.substr(0, kDigits) + " and " +
            now.kernels_sha256.substr(0, kDigits);
  return text + ".\n";
}

std::string counts(const Comparison& comparison) {
  std::string text;
  for (const Verdict verdict : kOrder) {
    const auto count = std::count_if(comparison.rows.begin(), comparison.rows.end(),
                                     [&](const ComparedRow& row) { return row.verdict == verdict; });
    if (count > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(verdict_name(verdict));
  }
  return (text.empty() ? "no rows" : text) + "\n";
}

// What to do where the clock may have made a difference; empty where it did not.
std::string clock_advice(const Comparison& comparison) {
  const auto count = std::count_if(comparison.rows.begin(), comparison.rows.end(),
                                   [](const ComparedRow& row) { return !row.clock_doubt.empty(); });
  if (count == 0) return {};
  return "The clock or the power limit may explain " + std::to_string(count) +
         (count == 1 ? " noisy row" : " noisy rows") +
         ": rest the card before each row ('rest_seconds'), or measure both kernels in turn ('run --against').\n";
}

// Empty where no row that was compared was interrupted on either side.
std::string advice(const Comparison& comparison) {
  const auto disturbed = [](const ComparedRow& row) {
    return row.base && row.now && (was_interrupted(*row.base) || was_interrupted(*row.now));
  };
  const auto count = std::count_if(comparison.rows.begin(), comparison.rows.end(), disturbed);
  if (count == 0) return {};
  return "Other programs interrupted " + std::to_string(count) + (count == 1 ? " row" : " rows") +
         ": 'inferometer doctor' says what disturbs this machine; measure again once it is idle.\n";
}

}  // namespace

std::string comparison_text(const Comparison& comparison, const CompareText& how) {
  std::string text;
  for (const std::string& obstacle : comparison.obstacles) text += "not comparable: " + obstacle + "\n";
  if (!comparison.obstacles.empty()) return text;
  text += "New time over base time, 95 % interval; threshold " + formatted("%.1f %%", 100 * comparison.threshold) +
          ", noise floor " + formatted("%.1f %%", 100 * comparison.noise_floor) + ".\n";
  text += programs(comparison.base, comparison.now);
  for (const std::string& difference : comparison.host_differences)
    text += "Rows on the CPU are not compared: " + difference + ".\n";
  for (const std::string& warning : comparison.warnings) text += "Warning: " + warning + ".\n";
  if (how.markdown) text += "\n";

  std::vector<const Fields*> problems;
  for (const ComparedRow& row : comparison.rows) problems.push_back(&any_record(row).problem);
  std::vector<std::string> varying;
  if (!problems.empty())
    varying = shown_fields(Json::object(), any_record(comparison.rows.front()).operator_name, problems).varying;
  const Cells header{"verdict", "variant", "problem", "base", "new", "new / base", "reason"};
  std::vector<Cells> lines;
  for (const Verdict verdict : kOrder)
    for (const ComparedRow& row : comparison.rows)
      if (row.verdict == verdict && (how.all_rows || !said_in_counts(row))) lines.push_back(cells_of(row, varying));
  const std::vector<std::string> shared = shared_reasons(lines);
  if (!lines.empty()) {
    if (how.markdown) {
      text += markdown_table_header(header);
      for (Cells& line : lines) {
        for (std::string& cell : line) cell = markdown_cell(cell);
        text += markdown_table_line(line);
      }
      text += "\n";
    } else {
      lines.insert(lines.begin(), header);
      text += aligned(lines);
    }
  }
  for (const std::string& reason : shared) text += how.markdown ? markdown_cell(reason) + "\n\n" : reason + "\n";
  text += counts(comparison);
  for (const std::string& sentence : {clock_advice(comparison), advice(comparison)})
    if (!sentence.empty()) text += (how.markdown ? "\n" : "") + sentence;
  return text;
}

}  // namespace inferometer
