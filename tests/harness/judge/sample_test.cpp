#include "harness/judge/sample.hpp"

#include <algorithm>
#include <set>

#include "tests/support/catch.hpp"

using inferometer::sample_rows;

namespace {

bool holds(const std::vector<std::int64_t>& sample, std::int64_t row) {
  return std::binary_search(sample.begin(), sample.end(), row);
}

}  // namespace

TEST_CASE("sample: a problem no larger than the sample is checked whole", "[judge][sample]") {
  CHECK(sample_rows(0, 5, 1).empty());
  CHECK(sample_rows(1, 5, 1) == std::vector<std::int64_t>{0});
  CHECK(sample_rows(5, 5, 1) == std::vector<std::int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("sample: a sample is ascending, without repetition, in range and as large as asked", "[judge][sample]") {
  for (const std::int64_t rows : {2, 6, 17, 129, 1000, 1 << 20}) {
    for (const std::int64_t count : {1, 2, 5, 40, 200}) {
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        CAPTURE(rows, count, seed);
        const auto sample = sample_rows(rows, count, seed);
        REQUIRE(std::ssize(sample) == std::min(rows, count));
        CHECK(std::adjacent_find(sample.begin(), sample.end(), std::greater_equal<>{}) == sample.end());
        CHECK(sample.front() == 0);
        CHECK(sample.back() < rows);
      }
    }
  }
}

TEST_CASE("sample: the first and last rows and both sides of tile edges are in it", "[judge][sample]") {
  const auto sample = sample_rows(1000, 64, 7);
  for (const std::int64_t row : {0, 999, 15, 16, 17, 63, 64, 65, 127, 128, 129}) CHECK(holds(sample, row));
  for (const std::int64_t row : {991, 992, 993, 959, 960, 961, 895, 896, 897}) CHECK(holds(sample, row));
}

TEST_CASE("sample: the seed alone decides, and other seeds look elsewhere", "[judge][sample]") {
  const auto sample = sample_rows(1'000'000, 100, 1);
  CHECK(sample == sample_rows(1'000'000, 100, 1));
  const auto other = sample_rows(1'000'000, 100, 2);
  std::vector<std::int64_t> common;
  std::set_intersection(sample.begin(), sample.end(), other.begin(), other.end(), std::back_inserter(common));
  CHECK(common.size() < 30);  // the edges, and hardly a random row
}

TEST_CASE("sample: over many seeds every row is looked at", "[judge][sample]") {
  std::set<std::int64_t> seen;
  for (std::uint64_t seed = 0; seed < 400; ++seed)
    for (const std::int64_t row : sample_rows(500, 40, seed)) seen.insert(row);
  CHECK(seen.size() == 500);
}
