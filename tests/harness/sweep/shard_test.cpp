#include "harness/sweep/shard.hpp"

#include <algorithm>
#include <set>

#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// 24 problems of three rows each, the first of each its baseline; sizes differ by a factor of 24.
Sweep grouped_sweep() {
  std::vector<CopyRow> rows;
  for (std::int64_t n = 1; n <= 24; ++n)
    for (const char* variant : {"cpu.right", "cpu.chatty", "cpu.stale"})
      rows.push_back({.variant = variant, .n = 1'000'000'000 * n});
  Sweep sweep = copy_sweep(rows);
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) sweep.rows[i].baseline_id = sweep.rows[i / 3 * 3].id;
  return sweep;
}

std::vector<std::string> ids(const Sweep& sweep) {
  std::vector<std::string> all;
  for (const SweepRow& row : sweep.rows) all.push_back(row.id);
  return all;
}

Sweep shard_of(Sweep sweep, int index, int count) {
  keep_shard(sweep, {.index = index, .count = count});
  return sweep;
}

double seconds_of(const Sweep& sweep) {
  double sum = 0;
  for (const SweepRow& row : sweep.rows) sum += estimated_seconds(sweep, row);
  return sum;
}

}  // namespace

TEST_CASE("shard: the shards of a sweep are disjoint, complete, in order, and the same each time", "[sweep][shard]") {
  const Sweep whole = grouped_sweep();
  const int count = GENERATE(1, 2, 3, 5, 24);
  std::vector<std::string> all;
  for (int index = 1; index <= count; ++index) {
    const std::vector<std::string> part = ids(shard_of(whole, index, count));
    CHECK(std::is_sorted(part.begin(), part.end()));
    CHECK(part == ids(shard_of(whole, index, count)));
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  CHECK(all == ids(whole));
}

TEST_CASE("shard: rows stay with their baseline", "[sweep][shard]") {
  for (int index = 1; index <= 5; ++index) {
    const Sweep part = shard_of(grouped_sweep(), index, 5);
    const std::vector<std::string> present = ids(part);
    for (const SweepRow& row : part.rows)
      CHECK(std::find(present.begin(), present.end(), row.baseline_id) != present.end());
  }
}

TEST_CASE("shard: without baselines rows stay with their problem", "[sweep][shard]") {
  Sweep sweep = grouped_sweep();
  for (SweepRow& row : sweep.rows) row.baseline_id.clear();
  const auto groups = row_groups(sweep);
  REQUIRE(groups.size() == 24);
  const auto first =
      std::find_if(groups.begin(), groups.end(), [](const RowGroup& group) { return group.rows.front() == 0; });
  REQUIRE(first != groups.end());
  CHECK(first->rows == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("shard: groups come longest first, each with the seconds of its rows", "[sweep][shard]") {
  const Sweep sweep = grouped_sweep();
  const auto groups = row_groups(sweep);
  CHECK(std::is_sorted(groups.begin(), groups.end(),
                       [](const RowGroup& a, const RowGroup& b) { return a.seconds > b.seconds; }));
  CHECK(groups.front().seconds > groups.back().seconds);
  for (const RowGroup& group : groups) {
    double seconds = 0;
    for (const std::size_t row : group.rows) seconds += estimated_seconds(sweep, sweep.rows[row]);
    CHECK(group.seconds == Approx(seconds));
  }
}

TEST_CASE("shard: groups of the rows that are left hold those alone", "[sweep][shard]") {
  const Sweep sweep = grouped_sweep();
  const auto all = row_groups(sweep);
  const std::vector<std::size_t> first = all.front().rows;
  REQUIRE(first.size() > 1);
  const auto left = row_groups(sweep, [&](const SweepRow& row) {
    return row.id == sweep.rows[first.back()].id ||
           std::none_of(first.begin(), first.end(), [&](std::size_t i) { return sweep.rows[i].id == row.id; });
  });
  CHECK(left.size() == all.size());
  const auto cut =
      std::find_if(left.begin(), left.end(), [&](const RowGroup& group) { return group.rows.back() == first.back(); });
  REQUIRE(cut != left.end());
  CHECK(cut->rows.size() == 1);
  CHECK(cut->seconds == Approx(estimated_seconds(sweep, sweep.rows[first.back()])));
  CHECK(row_groups(sweep, [](const SweepRow&) { return false; }).empty());
}

TEST_CASE("shard: none is estimated to take over a third longer than the mean", "[sweep][shard]") {
  // Greedy assignment, the longest first, is at most 4/3 - 1/(3 N) of the best (Graham, SIAM J. Appl. Math. 17, 1969),
  // and with 24 groups over 4 shards the best is the mean, nearly.
  const Sweep whole = grouped_sweep();
  const double mean = seconds_of(whole) / 4;
  for (int index = 1; index <= 4; ++index) {
    const double seconds = seconds_of(shard_of(whole, index, 4));
    CHECK(seconds < 4.0 / 3 * mean);
    CHECK(seconds > 0);
  }
}

TEST_CASE("shard: rows that no device here can run are spread too", "[sweep][shard]") {
  Sweep sweep = grouped_sweep();
  for (SweepRow& row : sweep.rows) row.variant = "cuda.unknown";
  for (int index = 1; index <= 4; ++index) CHECK(shard_of(sweep, index, 4).rows.size() == 18);
}

TEST_CASE("shard: more shards than groups, and words that are no shard, are refused", "[sweep][shard]") {
  CHECK_THROWS_WITH(shard_of(grouped_sweep(), 1, 25), contains_text("24 groups"));
  CHECK(parse_shard("3/8").index == 3);
  CHECK(parse_shard("3/8").count == 8);
  for (const char* wrong : {"", "3", "3/", "/8", "0/8", "9/8", "-1/8", "1/0", "1/8/2", "a/b", "1 /8", "99999999999/8"})
    CHECK_THROWS_WITH(parse_shard(wrong), contains_text("--shard must be I/N"));
}
