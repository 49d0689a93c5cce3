#include "harness/claims/part_text.hpp"

#include <algorithm>
#include <cmath>

#include "harness/claims/shapes.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/results/metrics.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

std::vector<double> sorted_values(const std::vector<ClaimPoint>& points) {
  std::vector<double> values;
  values.reserve(points.size());
  for (const ClaimPoint& point : points) values.push_back(point.value);
  return sorted_copy(values);
}

// A plain number without the zeros that end it.
std::string trimmed(std::string text) {
  if (text.find('.') == std::string::npos || text.find_first_not_of("-.0123456789") != std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// "2.11x to 7.64x, median 3.73x"; a single value alone.
std::string extent_of(const ClaimPart& part, const std::vector<ClaimPoint>& points) {
  const std::vector<double> values = sorted_values(points);
  std::string low = shown_value(part, values.front());
  const std::string high = shown_value(part, values.back());
  if (low == high) return low;
  std::string text = low + " to " + high;
  if (values.size() > 2) text += ", median " + shown_value(part, median(values));
  return text;
}

// The largest half width relative to its point; none where no point has an interval.
std::optional<double> widest_interval(const std::vector<ClaimPoint>& points) {
  std::optional<double> widest;
  for (const ClaimPoint& point : points) {
    if (!point.interval || !(point.value > 0)) continue;
    const double half = (point.interval->high - point.interval->low) / 2 / point.value;
    widest = std::max(widest.value_or(half), half);
  }
  return widest;
}

std::size_t inside_of(const std::vector<ClaimPoint>& points) {
  return static_cast<std::size_t>(
      std::count_if(points.begin(), points.end(), [](const ClaimPoint& point) { return point.inside; }));
}

// Points whose interval reaches over a bound of the accepted range: another run might judge them otherwise.
std::size_t undecided(const ClaimPart& part, const std::vector<ClaimPoint>& points) {
  const auto reaches_over = [&](const ClaimPoint& point) {
    return point.interval &&
           part.accepted.contains(point.interval->low) != part.accepted.contains(point.interval->high);
  };
  return static_cast<std::size_t>(std::count_if(points.begin(), points.end(), reaches_over));
}

// "between two devices", or of how many of the points that is so. Empty without such a point.
std::string two_devices_text(const std::vector<ClaimPoint>& points) {
  const auto count = static_cast<std::size_t>(
      std::count_if(points.begin(), points.end(), [](const ClaimPoint& point) { return point.two_devices; }));
  if (count == 0) return {};
  return (count == points.size() ? "" : std::to_string(count) + " of them ") + std::string("between two devices");
}

}  // namespace

std::string shown_value(const ClaimPart& part, double value) {
  switch (part.statistic) {
    case Statistic::reciprocal:
    case Statistic::ratio:
    case Statistic::inverse_ratio: return formatted(std::fabs(value) < 0.1 ? "%.2gx" : "%.2fx", value);
    case Statistic::fitted_exponent: return formatted("%.2f", value);
    case Statistic::share_of_best: return formatted("%.1f %%", 100 * value);
    case Statistic::largest_near_best:
    case Statistic::crossover: return formatted("%.0f", value);
    case Statistic::value: break;
  }
  if (part.quantity.kind == Quantity::Kind::time) return shown_time(value);
  if (part.quantity.kind == Quantity::Kind::memory) return shown_bytes(value);
  return trimmed(shown_metric(part.quantity.name, value));
}

std::string shown_accepted(const ClaimPart& part) {
  const AcceptedRange& range = part.accepted;
  if (range.min && range.max) return shown_value(part, *range.min) + " to " + shown_value(part, *range.max);
  if (range.min) return "at least " + shown_value(part, *range.min);
  if (range.max) return "at most " + shown_value(part, *range.max);
  return {};
}

std::string shown_measured(const JudgedPart& part) {
  const std::vector<ClaimPoint>& points = part.measurement.points;
  if (points.empty()) return {};
  std::string text = extent_of(part.part, points) + ", over " + counted(points.size(), "case");
  if (const auto width = widest_interval(points))
    text += formatted(points.size() == 1 ? "; +- %.1f %% (95 %%)" : "; each +- %.1f %% (95 %%) or less", 100 * *width);
  if (const std::string two = two_devices_text(points); !two.empty()) text += "; " + two;
  if (part.simulated()) text += "; simulated";
  if (const std::string replaced = shown_replaced(part); !replaced.empty()) text += "; simulated " + replaced;
  return text;
}

std::string shown_extent(const JudgedPart& part) {
  const std::vector<ClaimPoint>& points = part.measurement.points;
  return points.empty() ? std::string() : extent_of(part.part, points);
}

std::string shown_replaced(const JudgedPart& part) {
  const std::vector<ClaimPoint>& points = part.measurement.replaced;
  return points.empty() ? std::string() : extent_of(part.part, points);
}

std::string where_text(const JudgedPart& part) { return describe_shapes(part.measurement.points); }

std::string left_out_text(const JudgedPart& part) {
  std::string text;
  for (const auto& [why, count] : part.measurement.left_out)
    text += (text.empty() ? "" : ", ") + counted(static_cast<std::size_t>(count), "row") + " " + why;
  return text;
}

std::string part_sentence(const JudgedPart& part) {
  const std::vector<ClaimPoint>& points = part.measurement.points;
  std::string sentence = part.part.name + ": ";
  if (points.empty()) return sentence + "not tested here, rows of " + part.part.experiment + " would";
  if (const std::string accepted = shown_accepted(part.part); !accepted.empty())
    sentence += accepted + " at " + std::to_string(inside_of(points)) + " of " + counted(points.size(), "case") + ", ";
  sentence += (part.simulated() ? "simulated " : "measured ") + extent_of(part.part, points);
  if (const std::size_t open = undecided(part.part, points); open > 0)
    sentence += " (" + std::to_string(open) + " within the error of a bound)";
  if (const std::string two = two_devices_text(points); !two.empty()) sentence += ", " + two;
  if (const std::string replaced = shown_replaced(part); !replaced.empty()) sentence += ", simulated " + replaced;
  return sentence;
}

}  // namespace inferometer
