// Two runs of one program (A/A): compare must find no difference between them, and one that is there.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "harness/measure/stopping.hpp"
#include "harness/results/compare.hpp"
#include "harness/results/record_json.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using inferometer::test::sample_record;

namespace {

constexpr int kRows = 900;
constexpr double kThreshold = 0.05;  // of the command, where none is given
constexpr double kNoise = 0.01;      // what both runs say of themselves

// How the samples of a row scatter around its median, and how many there may be.
struct Kind {
  double scatter;
  double tail_share;  // of samples that something else made half as long again
  int max_samples;
};
constexpr Kind kKinds[] = {
    {.scatter = 0.004, .tail_share = 0, .max_samples = 2000},    // a kernel on a GPU: converges at once
    {.scatter = 0.03, .tail_share = 0.05, .max_samples = 2000},  // beside other work
    {.scatter = 0.2, .tail_share = 0, .max_samples = 30},        // too few samples: its median is known to 7 %
};

// As the sampler measures it: drawn until the rule stops, then summed up. Beside the scatter of samples, each run has
// an error of its own, of which the noise that is measured tells.
Record measured(int row, double factor, std::mt19937_64& random) {
  const Kind& kind = kKinds[row % std::size(kKinds)];
  std::normal_distribution<double> of_run(0, kNoise / 2);
  std::normal_distribution<double> of_sample(0, kind.scatter);
  std::bernoulli_distribution disturbed(kind.tail_share);
  const double median_ns = 100'000 * factor * std::exp(of_run(random));
  StoppingRule rule({.max_samples = kind.max_samples});
  std::vector<double> samples;
  std::string_view reason;
  while (reason.empty()) {
    samples.push_back(median_ns * std::exp(of_sample(random)) * (disturbed(random) ? 1.5 : 1));
    reason = rule.verdict(samples, 0);
  }
  Record record = sample_record();
  record.id = "row" + std::to_string(row);
  record.problem = {{"batch", std::int64_t{row}}};
  record.timing->isolated = summarize(samples, reason, CacheMode::cold);
  record.timing->headline_ns = record.timing->isolated.median_ns;
  record.timing->amortized.reset();
  return record;
}

Json run_of_all(double factor, std::mt19937_64& random) {
  Json rows = Json::array();
  for (int row = 0; row < kRows; ++row) rows.push_back(record_json(measured(row, factor, random)));
  return {{"schema", "inferometer.results/1"},
          {"environment", {{"gpu", {{"name", "some GPU"}}}, {"noise", {{"repeat_ratio", kNoise}}}}},
          {"rows", std::move(rows)}};
}

// Of the rows of one kind.
std::ptrdiff_t count(const Comparison& comparison, std::initializer_list<Verdict> verdicts, std::size_t kind) {
  std::ptrdiff_t found = 0;
  for (std::size_t row = kind; row < comparison.rows.size(); row += std::size(kKinds))
    found += std::count(verdicts.begin(), verdicts.end(), comparison.rows[row].verdict);
  return found;
}

}  // namespace

TEST_CASE("compare: two runs of one program differ in less than one row of a hundred", "[results][compare]") {
  std::mt19937_64 random(1);
  const Json base = run_of_all(1, random);
  const Comparison comparison = compare_results(base, run_of_all(1, random), kThreshold);
  REQUIRE(comparison.rows.size() == kRows);
  std::ptrdiff_t differ = 0;
  for (std::size_t kind = 0; kind < std::size(kKinds); ++kind)
    differ += count(comparison, {Verdict::slower, Verdict::faster}, kind);
  CAPTURE(differ);
  CHECK(differ <= kRows / 100);
  // Not because nothing could be told: rows that were measured well are the same.
  constexpr std::ptrdiff_t kOfAKind = kRows / std::ssize(kKinds);
  CHECK(count(comparison, {Verdict::same}, 0) >= kOfAKind * 99 / 100);
  CHECK(count(comparison, {Verdict::same}, 1) >= kOfAKind * 95 / 100);
}

TEST_CASE("compare: a program that is a tenth slower is slower in every row that was measured well",
          "[results][compare]") {
  std::mt19937_64 random(2);
  const Json base = run_of_all(1, random);
  const Comparison comparison = compare_results(base, run_of_all(1.1, random), kThreshold);
  constexpr std::ptrdiff_t kOfAKind = kRows / std::ssize(kKinds);
  CHECK(count(comparison, {Verdict::slower}, 0) >= kOfAKind * 95 / 100);
  CHECK(count(comparison, {Verdict::faster, Verdict::same}, 0) == 0);
  CHECK(exit_code(comparison) == 1);
}
