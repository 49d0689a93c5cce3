#include "harness/claims/along_statistics.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("claims: the exponent of a power is found, whatever its factor", "[claims][statistics]") {
  for (const double exponent : {-1.0, 0.0, 1.0, 1.9, 3.0}) {
    std::vector<AlongPoint> points;
    for (const double n : {32.0, 64.0, 128.0, 512.0}) points.push_back({n, 0.37 * std::pow(n, exponent)});
    INFO(exponent);
    CHECK(fitted_exponent_along(points).value() == Approx(exponent).margin(1e-12));  // rounding of log and pow
  }
}

TEST_CASE("claims: no exponent of two places, of the same place again, or of what has no logarithm",
          "[claims][statistics]") {
  CHECK_FALSE(fitted_exponent_along({}).has_value());
  CHECK_FALSE(fitted_exponent_along({{1, 1}, {2, 2}}).has_value());
  CHECK_FALSE(fitted_exponent_along({{1, 1}, {2, 2}, {2, 3}}).has_value());
  CHECK_FALSE(fitted_exponent_along({{1, 1}, {2, 0}, {4, 4}}).has_value());
  CHECK_FALSE(fitted_exponent_along({{0, 1}, {2, 2}, {4, 4}}).has_value());
}

TEST_CASE("claims: the best is the highest or the lowest value, and others are shares of it", "[claims][statistics]") {
  const std::vector<AlongPoint> points{{1, 50}, {2, 100}, {4, 80}};
  CHECK(best_along(points, false) == 100);
  CHECK(best_along(points, true) == 50);
  CHECK_FALSE(best_along({}, true).has_value());
  CHECK(share_of_best(80, 100, false) == 0.8);
  CHECK(share_of_best(80, 50, true) == 0.625);
}

TEST_CASE("claims: the knee is the largest place near the best, in any order of places", "[claims][statistics]") {
  const std::vector<AlongPoint> points{{16, 0.97}, {1, 0.99}, {4, 0.985}, {64, 0.9}};
  CHECK(largest_near_best_along(points, 0.01, false) == 4);
  CHECK(largest_near_best_along(points, 0.03, false) == 16);
  CHECK(largest_near_best_along({{1, 10}, {2, 10.2}, {4, 12}}, 0.05, true) == 2);  // times
  CHECK_FALSE(largest_near_best_along({{1, 10}}, 0.05, true).has_value());
  CHECK_FALSE(largest_near_best_along({{1, 10}, {2, 0}}, 0.05, true).has_value());
}

TEST_CASE("claims: the crossover is the last place before the first value below the bound", "[claims][statistics]") {
  const std::vector<AlongPoint> points{{64, 1.2}, {1, 2.8}, {256, 1.1}, {128, 0.9}, {16, 2}};
  CHECK(crossover_along(points, 1) == 64);
  CHECK(crossover_along(points, 0.5) == 256);
  CHECK(crossover_along(points, 3) == 0);
  CHECK_FALSE(crossover_along({}, 1).has_value());
}
