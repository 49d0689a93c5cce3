#include "reference/weight_quantization/grid_search.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace inferometer {
namespace {

constexpr int kParts = 36;
constexpr float kPart = 0.02F;

double squared_error(const GridFormat& format, const Grid& grid, std::span<const float> group,
                     std::vector<float>& worth) {
  worth.resize(group.size());
  nearest_worth(format, grid, group, worth);
  double sum = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const double error = static_cast<double>(worth[i]) - group[i];
    sum += error * error;
  }
  return sum;
}

}  // namespace

Grid part_of_range(const GridFormat& format, std::span<const float> group, float ratio) {
  const auto [least, greatest] = std::minmax_element(group.begin(), group.end());
  if (least == group.end()) return rtn_grid(format, group);
  return rtn_grid(format, std::array{ratio * *least, ratio * *greatest});
}

Grid choose_grid(const GridFormat& format, GridChoice choice, std::span<const float> group) {
  Grid best = rtn_grid(format, group);
  if (choice == GridChoice::range) return best;
  std::vector<float> worth;
  double least = squared_error(format, best, group, worth);
  for (int part = 1; part < kParts; ++part) {
    const Grid grid = part_of_range(format, group, 1 - kPart * static_cast<float>(part));
    const double error = squared_error(format, grid, group, worth);
    if (error >= least) continue;
    least = error;
    best = grid;
  }
  return best;
}

}  // namespace inferometer
