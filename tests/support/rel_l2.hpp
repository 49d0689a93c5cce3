// How far a vector is from another, relative to that one.
#pragma once

#include <cmath>
#include <functional>
#include <iterator>

#include "tests/support/catch.hpp"

namespace inferometer::test {

// ||got - expected|| / ||expected||, NaN for a NaN. `value`: of an element, where it is stored as bits.
template <class Got, class Expected, class Value = std::identity>
double rel_l2(const Got& got, const Expected& expected, Value value = {}) {
  REQUIRE(std::ssize(got) == std::ssize(expected));
  double error = 0;
  double norm = 0;
  auto element = std::begin(expected);
  for (const auto& of_got : got) {
    const double of_expected = value(*element++);
    error += std::pow(value(of_got) - of_expected, 2);
    norm += std::pow(of_expected, 2);
  }
  return std::sqrt(error / norm);
}

}  // namespace inferometer::test
