#include "harness/claims/shapes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

namespace inferometer {
namespace {

constexpr std::size_t kMostListed = 5;  // values of a field; more of a number become a range

// The values of one field over the points, in order: numbers by size, words by the alphabet.
struct Axis {
  std::string name;
  struct Count {
    std::string text;
    bool numeric = false;
    int inside = 0;
    int total = 0;
  };
  std::map<std::pair<double, std::string>, Count> counts;

  void add(const Value& value, bool inside) {
    double order = 0;
    bool numeric = true;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      order = static_cast<double>(*integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      order = *real;
    } else {
      numeric = false;
    }
    const std::string text = to_string(value);
    Count& count = counts[{order, numeric ? std::string() : text}];
    count.text = text;
    count.numeric = numeric;
    count.inside += inside ? 1 : 0;
    ++count.total;
  }

  // Gini impurity of the parts, weighted by their points: 0 where each value is all inside or all outside.
  double impurity() const {
    double sum = 0;
    for (const auto& [order, count] : counts)
      sum += static_cast<double>(count.inside) * (count.total - count.inside) / count.total;
    return sum;
  }

  bool numeric() const { return counts.begin()->second.numeric; }
};

// Fields that vary, and the variant and the device where they do.
std::vector<Axis> varying_axes(const std::vector<ClaimPoint>& points) {
  std::vector<Axis> axes;
  const auto add = [&](const std::string& name, const Value& value, bool inside) {
    auto axis = std::find_if(axes.begin(), axes.end(), [&](const Axis& one) { return one.name == name; });
    if (axis == axes.end()) axis = axes.insert(axes.end(), Axis{.name = name, .counts = {}});
    axis->add(value, inside);
  };
  for (const ClaimPoint& point : points) {
    add("variant", point.variant, point.inside);
    add("device", point.device, point.inside);
    for (const auto& [name, value] : point.problem) add(name, value, point.inside);
  }
  std::erase_if(axes, [](const Axis& axis) { return axis.counts.size() < 2; });
  return axes;
}

std::string extent_of(const Axis& axis) {
  const std::string first = axis.counts.begin()->second.text;
  const std::string last = axis.counts.rbegin()->second.text;
  if (axis.counts.size() > kMostListed)
    return axis.numeric() ? first + " to " + last : std::to_string(axis.counts.size()) + " values";
  std::string text;
  std::size_t left = axis.counts.size();
  for (const auto& [order, count] : axis.counts) {
    --left;
    text += count.text + (left > 1 ? ", " : left == 1 ? " or " : "");
  }
  return text;
}

std::string extents(const std::vector<Axis>& axes) {
  std::string text;
  for (const Axis& axis : axes) text += (text.empty() ? "" : "; ") + axis.name + " " + extent_of(axis);
  return text;
}

enum class State : std::uint8_t { none, some, all };

State state_of(const Axis::Count& count) {
  if (count.inside == 0) return State::none;
  return count.inside == count.total ? State::all : State::some;
}

// Neighbouring numbers that are all inside, or all outside, become a range; where there are many, mixed ones too.
std::string by_value(const Axis& axis) {
  struct Segment {
    std::string first;
    std::string last;
    State state = State::none;
    int inside = 0;
    int total = 0;
  };
  const bool many = axis.counts.size() > kMostListed;
  std::vector<Segment> segments;
  for (const auto& [order, count] : axis.counts) {
    const State state = state_of(count);
    if (!axis.numeric() || segments.empty() || segments.back().state != state || (state == State::some && !many))
      segments.push_back({.first = count.text, .last = {}, .state = state});
    segments.back().last = count.text;
    segments.back().inside += count.inside;
    segments.back().total += count.total;
  }
  std::string text = "by " + axis.name + ": ";
  for (const Segment& segment : segments) {
    if (&segment != &segments.front()) text += ", ";
    text += segment.first + (segment.first == segment.last ? "" : " to " + segment.last) + " at " +
            std::to_string(segment.inside) + " of " + std::to_string(segment.total);
  }
  return text;
}

}  // namespace

std::string describe_shapes(const std::vector<ClaimPoint>& points) {
  const std::vector<Axis> axes = varying_axes(points);
  if (points.size() < 2 || axes.empty()) return {};
  const auto inside = std::count_if(points.begin(), points.end(), [](const ClaimPoint& point) { return point.inside; });
  if (inside == 0 || inside == static_cast<std::ptrdiff_t>(points.size())) return extents(axes);
  // Of equals the field with the fewest values, which says it shortest.
  const auto best = std::min_element(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return std::pair(a.impurity(), a.counts.size()) < std::pair(b.impurity(), b.counts.size());
  });
  return by_value(*best);
}

}  // namespace inferometer
