#include "harness/results/metrics.hpp"

#include <limits>

#include "harness/results/terminal.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using inferometer::test::sample_record;

namespace {

constexpr const char* kShare = "kv_token_share_of_allocated_ratio";

Record simulated() {
  Record record = sample_record();
  record.work = Work{};
  record.metrics = {{"preemptions", 3}, {kShare, 0.931}};
  return record;
}

}  // namespace

TEST_CASE("metrics: a value is shown in the unit of its name's suffix", "[results][metrics]") {
  CHECK(shown_metric("share_ratio", 0.9314) == "93.1 %");
  CHECK(shown_metric("quantization_rel_error", 0.00123) == "1.2e-03");
  CHECK(shown_metric("ttft_p50_ns", 81234) == "81.2 us");
  CHECK(shown_metric("saved_bytes", 1.61e9) == "1.61 GB");
  CHECK(shown_metric("saved_bytes", 0) == "0.00 B");
  CHECK(shown_metric("output_tokens_per_s", 12345.6) == "12346 /s");
  CHECK(shown_metric("preemptions", 9916) == "9916");
  CHECK(shown_metric("steps", 123456789) == "123456789");
  CHECK(shown_metric("admitted_mean", 85.6) == "85.60");
  CHECK(shown_metric("admitted_mean", 999.97) == "1000");
  CHECK(shown_metric("admitted_mean", 1e200 / 3) == "3.333e+199");
}

TEST_CASE("metrics: a label has words for underscores and no unit", "[results][metrics]") {
  CHECK(metric_label(kShare) == "kv token share of allocated");
  CHECK(metric_label("output_tokens_per_s") == "output tokens");
  CHECK(metric_label("quantization_rel_error") == "quantization rel error");
  CHECK(metric_label("preemptions") == "preemptions");
}

TEST_CASE("metrics: a record without the metric, or without a number for it, shows nothing", "[results][metrics]") {
  Record record = simulated();
  CHECK(shown_metric(record, kShare) == "93.1 %");
  CHECK(shown_metric(record, "admitted_mean").empty());
  record.metrics.back().value = std::numeric_limits<double>::quiet_NaN();
  CHECK(shown_metric(record, kShare).empty());
}

TEST_CASE("metrics: columns are the operator's headline metrics that some row has, in its order",
          "[results][metrics]") {
  const Record record = simulated();
  Record failed = record;
  failed.metrics.clear();
  CHECK(metric_columns("kv_memory", {&failed, &record}).names == std::vector<std::string>{kShare, "preemptions"});
  CHECK(metric_columns("kv_memory", {&failed}).names.empty());
  CHECK(metric_columns("attention_prefill", {&record}).names.empty());
  CHECK(metric_columns("an operator of another version", {&record}).names.empty());
}

TEST_CASE("metrics: they come first where no time can be set against work", "[results][metrics]") {
  const Record record = simulated();
  Record timed = record;
  timed.work->bytes = 1;
  CHECK(metric_columns("kv_memory", {&record}).first);
  CHECK_FALSE(metric_columns("kv_memory", {&record, &timed}).first);
  CHECK_FALSE(metric_columns("attention_prefill", {&record}).first);
}

TEST_CASE("terminal: a text is cut at blanks, and a long word stays whole", "[results][metrics]") {
  using Lines = std::vector<std::string>;
  CHECK(wrapped("kv token share of pool under load", 14) == Lines{"kv token share", "of pool under", "load"});
  CHECK(wrapped("a quantization", 5) == Lines{"a", "quantization"});
  CHECK(wrapped("time", 14) == Lines{"time"});
  CHECK(wrapped("", 14).empty());
}
