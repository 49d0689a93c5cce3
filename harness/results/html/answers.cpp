#include "harness/results/html/answers.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "harness/measure/statistics.hpp"
#include "harness/results/html/text.hpp"
#include "harness/results/summary.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

constexpr double kWidth = 400;
constexpr double kHeight = 34;
constexpr double kMargin = 10;

// Beside answers of a GPU those of the CPU are none: they stay in the table.
bool on_cpu(const std::string& variant) { return variant.starts_with("cpu."); }

// The speed-up axis of all strips, in logarithms; always with 1, where nothing is won.
struct Scale {
  double low = 0;
  double high = 0;

  double x(double ratio) const { return kMargin + (kWidth - 2 * kMargin) * (std::log(ratio) - low) / (high - low); }
};

struct Answer {
  std::string variant;
  std::vector<double> speedups;  // sorted
};

// The greatest median first.
std::vector<Answer> answers_of(const ReportFile& file) {
  std::map<std::string, std::vector<double>> by_variant;
  for (const ReportRow& row : file.rows)
    if (row.speedup && *row.speedup > 0 && row.record.variant != file.baseline)
      by_variant[row.record.variant].push_back(*row.speedup);
  std::vector<Answer> all;
  all.reserve(by_variant.size());
  for (const auto& [variant, values] : by_variant) all.push_back({variant, sorted_copy(values)});
  std::stable_sort(all.begin(), all.end(),
                   [](const Answer& a, const Answer& b) { return median(a.speedups) > median(b.speedups); });
  const bool gpu = std::any_of(all.begin(), all.end(), [](const Answer& answer) { return !on_cpu(answer.variant); });
  if (gpu) std::erase_if(all, [](const Answer& answer) { return on_cpu(answer.variant); });
  return all;
}

Scale scale_of(const std::vector<Answer>& all) {
  Scale scale;
  for (const Answer& answer : all) {
    scale.low = std::min(scale.low, std::log(answer.speedups.front()));
    scale.high = std::max(scale.high, std::log(answer.speedups.back()));
  }
  constexpr double kLeastSpan = 0.1;  // differences of a few percent do not fill the strip
  if (scale.high - scale.low < kLeastSpan) scale.high = scale.low + kLeastSpan;
  return scale;
}

std::string number(double value) { return formatted("%.1f", value); }

std::string shown(double speedup) { return formatted(speedup < 0.095 ? "%.2g" : "%.2f", speedup) + "\u00d7"; }

std::string strip(const std::vector<double>& values, const Scale& scale) {
  std::string svg = "<svg class=\"strip\" viewBox=\"0 0 " + number(kWidth) + " " + number(kHeight);
  svg += "\" role=\"img\" aria-label=\"speed-ups from " + shown(values.front()) + " to " + shown(values.back()) + "\">";
  svg += "<line class=\"axis\" x1=\"0\" x2=\"" + number(kWidth) + "\" y1=\"17\" y2=\"17\"/>";
  const std::string one = number(scale.x(1));
  svg += "<line class=\"one\" x1=\"" + one + "\" x2=\"" + one + "\" y1=\"3\" y2=\"31\"/>";
  for (const double value : values) svg += "<circle cx=\"" + number(scale.x(value)) + "\" cy=\"17\" r=\"4\"/>";
  const std::string middle = number(scale.x(median(values)));
  svg += "<line class=\"median\" x1=\"" + middle + "\" x2=\"" + middle + "\" y1=\"5\" y2=\"29\"/>";
  return svg + "</svg>";
}

}  // namespace

std::string answer_lines(const ReportFile& file, const Json& results) {
  std::vector<std::string> lines = summary_lines(results);
  if (!std::all_of(lines.begin(), lines.end(), on_cpu)) std::erase_if(lines, on_cpu);
  if (lines.empty())
    return html_element("p", "", file.rows.empty() ? "No row was measured." : "No row has a figure to compare.");
  std::string text = "<ul class=\"lines\">";
  for (const std::string& line : lines) {
    const std::size_t colon = line.find(": ");
    text += "<li>" + html_element("b", "", line.substr(0, colon)) + " " + html_text(line.substr(colon + 2)) + "</li>";
  }
  return text + "</ul>";
}

std::string answers(const ReportFile& file, const Json& results) {
  const std::vector<Answer> all = file.metrics.first ? std::vector<Answer>() : answers_of(file);
  if (all.empty()) return answer_lines(file, results);
  const Scale scale = scale_of(all);
  std::string text = "<div class=\"answers\">\n";
  for (const auto& [variant, values] : all) {
    text += "<div class=\"answer\">" + html_element("p", "class=\"figure\"", shown(median(values)));
    text += "<div>" + html_element("p", "class=\"variant\"", variant) + strip(values, scale);
    const std::string problems = std::to_string(values.size()) + (values.size() == 1 ? " problem" : " problems");
    text += html_element("p", "class=\"says\"",
                         shown(values.front()) + " to " + shown(values.back()) + " as fast, over " + problems);
    text += "</div></div>\n";
  }
  return text + "</div>\n" +
         html_element(
             "p", "class=\"caption\"",
             "Median speed-up over " + file.baseline +
                 ". A dot is a problem, on a logarithmic scale that all variants share; the dashed line is 1\u00d7.") +
         "\n";
}

}  // namespace inferometer
