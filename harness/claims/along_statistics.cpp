#include "harness/claims/along_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace inferometer {
namespace {

bool all_positive(const std::vector<AlongPoint>& points) {
  return std::all_of(points.begin(), points.end(), [](const AlongPoint& point) { return point.value > 0; });
}

}  // namespace

std::optional<double> fitted_exponent_along(const std::vector<AlongPoint>& points) {
  constexpr std::size_t kLeast = 3;  // two always lie on a line
  std::set<double> places;
  double mean_x = 0;
  double mean_y = 0;
  for (const auto& [along, value] : points) {
    if (!(along > 0 && value > 0)) return std::nullopt;
    places.insert(along);
    mean_x += std::log(along) / static_cast<double>(points.size());
    mean_y += std::log(value) / static_cast<double>(points.size());
  }
  if (places.size() < kLeast) return std::nullopt;
  double covariance = 0;
  double variance = 0;
  for (const auto& [along, value] : points) {
    covariance += (std::log(along) - mean_x) * (std::log(value) - mean_y);
    variance += (std::log(along) - mean_x) * (std::log(along) - mean_x);
  }
  return covariance / variance;
}

std::optional<double> best_along(const std::vector<AlongPoint>& points, bool lower_is_better) {
  if (points.empty()) return std::nullopt;
  const auto [least, most] = std::minmax_element(
      points.begin(), points.end(), [](const AlongPoint& a, const AlongPoint& b) { return a.value < b.value; });
  return lower_is_better ? least->value : most->value;
}

double share_of_best(double value, double best, bool lower_is_better) {
  return lower_is_better ? best / value : value / best;
}

std::optional<double> largest_near_best_along(const std::vector<AlongPoint>& points, double near,
                                              bool lower_is_better) {
  constexpr std::size_t kLeast = 2;
  const auto best = best_along(points, lower_is_better);
  if (points.size() < kLeast || !all_positive(points)) return std::nullopt;
  std::optional<double> largest;
  for (const auto& [along, value] : points)
    if (share_of_best(value, *best, lower_is_better) >= 1 - near) largest = std::max(largest.value_or(along), along);
  return largest;
}

std::optional<double> crossover_along(std::vector<AlongPoint> points, double bound) {
  if (points.empty()) return std::nullopt;
  std::sort(points.begin(), points.end(), [](const AlongPoint& a, const AlongPoint& b) { return a.along < b.along; });
  double last = 0;
  for (const auto& [along, value] : points) {
    if (value < bound) break;
    last = along;
  }
  return last;
}

}  // namespace inferometer
