// Latencies, rates and shares against figures worked out by hand.
#include <cmath>
#include <vector>

#include "reference/serving/ledger.hpp"
#include "reference/serving/metrics.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

constexpr std::int64_t kMs = 1'000'000;

RequestRecord record(std::int64_t arrival_ms, const std::vector<std::int64_t>& tokens_ms, std::int64_t prompt = 10) {
  RequestRecord result{.arrival_ns = arrival_ms * kMs, .prompt_tokens = prompt};
  for (const std::int64_t at : tokens_ms) {
    result.token_ns.push_back(at * kMs);
    result.outputs.push_back(1);
  }
  return result;
}

}  // namespace

TEST_CASE("serving metrics: tokens at 0.5, 0.6 and 0.8 s", "[serving][metrics]") {
  const RequestRecord one = record(0, {500, 600, 800});
  CHECK(ttft_ns(one) == 500 * kMs);
  CHECK(itl_ns(one) == std::vector<std::int64_t>{100 * kMs, 200 * kMs});
  CHECK(tpot_ns(one) == 150.0 * kMs);
  CHECK(end_to_end_ns(one) == 800 * kMs);
}

TEST_CASE("serving metrics: times count from the planned arrival", "[serving][metrics]") {
  const RequestRecord one = record(300, {500, 600, 800});
  CHECK(ttft_ns(one) == 200 * kMs);
  CHECK(tpot_ns(one) == 150.0 * kMs);
  CHECK(end_to_end_ns(one) == 500 * kMs);
}

TEST_CASE("serving metrics: what one output or none cannot have is nothing", "[serving][metrics]") {
  const RequestRecord none = record(0, {});
  CHECK_FALSE(ttft_ns(none));
  CHECK_FALSE(end_to_end_ns(none));
  CHECK_FALSE(tpot_ns(none));
  CHECK(itl_ns(none).empty());
  const RequestRecord one = record(0, {5});
  CHECK(ttft_ns(one) == 5 * kMs);
  CHECK(end_to_end_ns(one) == 5 * kMs);
  CHECK_FALSE(tpot_ns(one));
  CHECK(itl_ns(one).empty());
}

TEST_CASE("serving metrics: percentiles lie between samples", "[serving][metrics]") {
  std::vector<double> samples;
  for (int i = 100; i >= 0; --i) samples.push_back(10.0 * i);
  samples.pop_back();  // 1000, 990, ... 10
  const LatencySummary summary = summarize(samples);
  CHECK(summary.samples == 100);
  CHECK(summary.mean_ns == Approx(505));
  CHECK(summary.p50_ns == Approx(505));    // rank 49.5 of 0 ... 99
  CHECK(summary.p90_ns == Approx(901));    // rank 89.1
  CHECK(summary.p99_ns == Approx(990.1));  // rank 98.01
  const LatencySummary nothing = summarize({});
  CHECK(nothing.samples == 0);
  CHECK(std::isnan(nothing.p50_ns));
}

TEST_CASE("serving metrics: rates are over the time from the first arrival to the last output", "[serving][metrics]") {
  std::vector<RequestRecord> records{record(1000, {1500, 1600, 1800}), record(1000, {2000}), record(2500, {2900, 3000}),
                                     record(2500, {2600})};
  records.back().outcome = RequestOutcome::aborted;
  const ServingMetrics metrics = serving_metrics(records, 1, {.ttft_ns = 600.0 * kMs, .tpot_ns = 120.0 * kMs});
  CHECK(metrics.completed == 3);
  CHECK(metrics.aborted == 1);
  CHECK(metrics.duration_ns == 2000 * kMs);
  CHECK(metrics.output_tokens == 6);
  CHECK(metrics.output_tokens_per_s == Approx(3));
  CHECK(metrics.total_tokens_per_s == Approx(18));
  CHECK(metrics.requests_per_s == Approx(1.5));
  // The first has TPOT 150, the second TTFT 1000; the third 400 and 100. Five came, one of them refused.
  CHECK(metrics.goodput_per_s == Approx(0.5));
  CHECK(metrics.goodput_ratio == Approx(0.2));
  CHECK(metrics.ttft.samples == 3);
  CHECK(metrics.ttft.p50_ns == Approx(500.0 * kMs));
  CHECK(metrics.tpot.samples == 2);
  CHECK(metrics.tpot.mean_ns == Approx(125.0 * kMs));
  CHECK(metrics.itl.samples == 3);
  CHECK(metrics.itl.mean_ns == Approx(400.0 / 3 * kMs));
  CHECK(metrics.end_to_end.p50_ns == Approx(800.0 * kMs));
}

TEST_CASE("serving metrics: a request keeps limits at their very value, and what it lacks", "[serving][metrics]") {
  const RequestRecord one = record(0, {500});
  CHECK(keeps({}, one));
  CHECK(keeps({.ttft_ns = 500.0 * kMs, .tpot_ns = 0.0}, one));
  CHECK_FALSE(keeps({.ttft_ns = 500.0 * kMs - 1}, one));
  CHECK_FALSE(keeps({.end_to_end_ns = 500.0 * kMs - 1}, one));
}

TEST_CASE("serving metrics: a run of nothing has rates that are no numbers", "[serving][metrics]") {
  const ServingMetrics metrics = serving_metrics({});
  CHECK(metrics.duration_ns == 0);
  CHECK(std::isnan(metrics.output_tokens_per_s));
  CHECK(std::isnan(metrics.goodput_ratio));
  CHECK(std::isnan(metrics.ttft.p99_ns));
  CHECK(std::isnan(slot_occupancy({.slots = 4})));
  CHECK(std::isnan(padding_share({.slots = 4})));
  CHECK(slot_shares({.slots = 4}).empty());
}

TEST_CASE("serving metrics: the shares of a ledger are its states over all slot-steps", "[serving][metrics]") {
  const ServingLedger ledger{.slots = 4,
                             .steps = 8,
                             .producing = 16,
                             .prefilling = 4,
                             .discarded = 1,
                             .stalled = 2,
                             .ended = 3,
                             .blocked = 2,
                             .idle = 4};
  CHECK(ledger.slot_steps() == 32);
  double sum = 0;
  for (const SlotShare& share : slot_shares(ledger)) sum += share.share;
  CHECK(sum == 1);  // 32 is a power of two: exact
  CHECK(slot_shares(ledger)[0].state == "producing");
  CHECK(slot_shares(ledger)[0].share == slot_occupancy(ledger));
  CHECK(slot_occupancy(ledger) == 0.5);
}
