// Statistics over rows that are alike but for one field: a fitted exponent, shares of the best, a knee, a crossover.
#pragma once

#include <optional>
#include <vector>

#include "harness/claims/claim.hpp"

namespace inferometer {

struct AlongPoint {
  double along = 0;
  double value = 0;
};

// e of value ~ along^e by least squares of the logarithms. None below three different places, or where a place or value
// is not above zero.
std::optional<double> fitted_exponent_along(const std::vector<AlongPoint>& points);

// The best value; none of no points.
std::optional<double> best_along(const std::vector<AlongPoint>& points, bool lower_is_better);

// 1 for the best value itself. `value` and `best` are above zero.
double share_of_best(double value, double best, bool lower_is_better);

// None below two points, or where a value is not above zero.
std::optional<double> largest_near_best_along(const std::vector<AlongPoint>& points, double near, bool lower_is_better);

// The last place up to which, from the smallest one on, values are at least `bound`; 0 where the first is below. None
// of no points.
std::optional<double> crossover_along(std::vector<AlongPoint> points, double bound);

}  // namespace inferometer
