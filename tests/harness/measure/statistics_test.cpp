#include "harness/measure/statistics.hpp"

#include <cmath>
#include <cstdint>
#include <random>

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("statistics: quantiles interpolate between order statistics", "[measure][statistics]") {
  const std::vector<double> ascending = sorted_copy(std::vector<double>{30, 10, 20, 40});
  CHECK(ascending == std::vector<double>{10, 20, 30, 40});
  CHECK(median(ascending) == 25);
  CHECK(quantile(ascending, 0) == 10);
  CHECK(quantile(ascending, 1) == 40);
  CHECK(quantile(ascending, 0.1) == Approx(13));  // position 0.3 between 10 and 20
  CHECK(median(std::vector<double>{7}) == 7);
  CHECK(median(std::vector<double>{1, 2, 9}) == 2);
}

TEST_CASE("statistics: the MAD is the median distance from the given center", "[measure][statistics]") {
  // Distances from 3: 2, 1, 0, 1, 97; their median is 1 although one sample lies far away.
  CHECK(median_absolute_deviation(std::vector<double>{5, 2, 3, 4, 100}, 3) == 1);
}

TEST_CASE("statistics: ranks of the median's interval equal the tabulated ones", "[measure][statistics]") {
  CHECK(median_interval_rank(0) == 0);
  CHECK(median_interval_rank(5) == 0);  // 2 / 2^5 = 6.25 % lie outside even the extremes
  // Table of 95 % sign-test intervals, e.g. Conover, "Practical Nonparametric Statistics", 3rd ed., table A3.
  CHECK(median_interval_rank(6) == 1);
  CHECK(median_interval_rank(8) == 1);
  CHECK(median_interval_rank(9) == 2);
  CHECK(median_interval_rank(10) == 2);
  CHECK(median_interval_rank(20) == 6);
  CHECK(median_interval_rank(30) == 10);
  CHECK(median_interval_rank(50) == 18);
  CHECK(median_interval_rank(100) == 40);
  CHECK_FALSE(median_interval(std::vector<double>{1, 2, 3, 4, 5}));
  const auto interval = median_interval(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  REQUIRE(interval);
  CHECK(interval->low == 2);
  CHECK(interval->high == 9);
}

TEST_CASE("statistics: exact and approximate ranks meet where one gives way to the other", "[measure][statistics]") {
  // Around n = 1000 a rank moves by about 0.47 a sample; a step of more than one would be a seam.
  for (std::size_t n = 990; n < 1010; ++n) {
    CAPTURE(n);
    const std::size_t step = median_interval_rank(n + 1) - median_interval_rank(n);
    CHECK(step <= 1);
  }
  CHECK(median_interval_rank(1000) == 469);
}

TEST_CASE("statistics: the interval holds the median of a skewed distribution 95 times in 100",
          "[measure][statistics]") {
  // Exact coverage is 1 - 2 P(Binomial(n, 1/2) < rank): 97.9 % for n = 10, 95.7 % for 30, 96.5 % for 100 samples. With
  // 4000 trials its standard deviation is at most sqrt(0.043 * 0.957 / 4000) = 0.32 %; four of them are allowed.
  constexpr int kTrials = 4000;
  constexpr double kAllowed = 0.013;
  const struct {
    int samples;
    double coverage;
  } cases[] = {{10, 0.9785}, {30, 0.9572}, {100, 0.9648}};
  std::mt19937_64 random(20261129);
  std::exponential_distribution<double> exponential(1.0);  // median ln 2
  for (const auto& [samples, coverage] : cases) {
    int held = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> values(static_cast<std::size_t>(samples));
      for (double& value : values) value = exponential(random);
      const auto interval = median_interval(sorted_copy(values));
      REQUIRE(interval);
      if (interval->low <= std::log(2.0) && std::log(2.0) <= interval->high) ++held;
    }
    CAPTURE(samples, held);
    CHECK(std::abs(static_cast<double>(held) / kTrials - coverage) < kAllowed);
  }
}
