// The operator around the policies: fields it refuses, a judge that finds wrong ledgers, shares that sum to 1.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/run/row_runner.hpp"
#include "reference/kv_memory/recount.hpp"
#include "tests/reference/kv_memory/kv_memory_runs.hpp"

using namespace inferometer;
using test::run_policy;

namespace {

using Limbs = std::vector<std::int32_t>;

const Operator& kv_memory() { return *find_operator("kv_memory"); }

Fields small_problem() { return {{"requests", std::int64_t{40}}, {"trace_seed", std::int64_t{5}}}; }

Limbs limbs_of(const KvLedger& ledger) {
  Limbs limbs(kKvCounts * kKvLimbs);
  ledger.write(limbs);
  return limbs;
}

std::string audit(const KvLedger& ledger, const char* variant) {
  const Limbs limbs = limbs_of(ledger);
  const void* tensors[] = {limbs.data()};
  return kv_memory().audit(kv_memory().parse(small_problem()).get(), variant, tensors);
}

std::map<std::string, double> metrics_of(const KvLedger& ledger) {
  const Limbs limbs = limbs_of(ledger);
  const void* tensors[] = {limbs.data()};
  std::map<std::string, double> metrics;
  for (const Metric& metric : kv_memory().metrics(kv_memory().parse(small_problem()).get(), Inputs({}, 1), tensors, 1))
    metrics[metric.name] = metric.value;
  return metrics;
}

// A policy that gives room for the asking and says that its pool is empty.
class Boundless : public KvPlacement {
 public:
  bool can_hold(const KvRequest&) const override { return true; }
  std::optional<KvRoom> admit(const KvRequest& request, std::int64_t, bool) override {
    return KvRoom{.capacity = request.stored(), .next_look = request.stored() + 1};
  }
  std::optional<KvRoom> extend(const KvRequest&, std::int64_t) override { return std::nullopt; }
  void release(const KvRequest&, std::int64_t) override {}
  KvPoolState state() const override { return {}; }
  std::int64_t version() const override { return 0; }
};

void run_boundless(const KvMemoryProblem& problem, const KvMemoryTensors& tensors, const Launch&) {
  Boundless policy;
  simulate(problem, policy, tensors);
}

// Writes a balanced ledger in which every request is said to be done in one step.
void run_idle(const KvMemoryProblem& problem, const KvMemoryTensors& tensors, const Launch&) {
  KvLedger ledger;
  const auto source = open_requests(problem);
  for (KvRequest request; source->next(request);) {
    ++ledger[KvCount::requests];
    ledger[KvCount::prompt_tokens] += request.prompt;
    ledger[KvCount::output_tokens] += request.output;
  }
  ledger[KvCount::pool_slots] = ledger[KvCount::free] = problem.pool_slots();
  ledger[KvCount::steps] = 1;
  ledger.write({tensors.ledger, kKvCounts * kKvLimbs});
}

const RegisterVariant<KvMemory> boundless{
    {.name = "cpu.test_boundless", .summary = "takes no slot at all", .run = &run_boundless}};
const RegisterVariant<KvMemory> idle{{.name = "cpu.test_idle", .summary = "computes nothing", .run = &run_idle}};

}  // namespace

TEST_CASE("kv_memory: impossible problems are refused by field, with what is allowed", "[kv_memory][operator]") {
  const auto refused = [](const Fields& fields) -> std::string {
    try {
      kv_memory().parse(fields);
    } catch (const ProblemError& error) {
      return error.field() + ": " + error.what();
    }
    return "accepted";
  };
  const auto n = [](std::int64_t value) { return Value(value); };
  CHECK(refused({}) == "accepted");
  CHECK(refused({{"model", std::string("opt_13")}}).find("nearest is 'opt_13b'") != std::string::npos);
  CHECK(refused({{"pool_bytes", n(1000)}}) ==
        "pool_bytes: pool_bytes must be at least the 819200 bytes of one token, got 1000");
  CHECK(refused({{"block_size", n(16000)}}).find("block_size: block_size must be at most the 15728 tokens") == 0);
  CHECK(refused({{"model", std::string("qwen25_7b")}, {"pool_bytes", n(std::int64_t{1} << 50)}, {"block_size", n(1)}})
            .find("block_size: block_size must cut the pool into less than 2^31 blocks") == 0);
  CHECK(refused({{"kv_bits", n(5)}}).find("kv_bits: ") == 0);
  CHECK(refused({{"order", std::string("random")}}).find("order: order must be one of fcfs, shortest_first") == 0);
  CHECK(refused({{"step_ms", Value(0.0)}}).find("step_ms: ") == 0);
  CHECK(refused({{"watermark_ratio", Value(0.7)}}).find("watermark_ratio: ") == 0);
  CHECK(refused({{"requests", n(-1)}}).find("requests: ") == 0);
}

TEST_CASE("kv_memory: the longest length of a row is the model's unless it is given", "[kv_memory][operator]") {
  CHECK(test::parse_problem({}).max_length == 2048);
  CHECK(test::parse_problem({{"model", std::string("llama31_8b")}}).max_length == 131072);
  CHECK(test::parse_problem({{"max_length", std::int64_t{99}}}).max_length == 99);
}

TEST_CASE("kv_memory: a ledger comes back from its limbs whatever it holds", "[kv_memory][ledger]") {
  KvLedger ledger;
  std::int64_t value = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < kKvCounts; ++i, value = value / 5 * 2) ledger[static_cast<KvCount>(i)] = value;
  const Limbs limbs = limbs_of(ledger);
  CHECK(KvLedger::read(limbs) == ledger);
  for (const std::int32_t limb : limbs) {
    CHECK(limb >= 0);  // never all bits set, which says that nobody wrote it
    CHECK(limb < 1 << 21);
  }
  ledger[KvCount::free] = -1;
  CHECK_THROWS_AS(limbs_of(ledger), std::out_of_range);
}

TEST_CASE("kv_memory: the audit finds every count that is off by one", "[kv_memory][judge]") {
  for (const char* policy : {"cpu.reserve_max", "cpu.reserve_pow2", "cpu.reserve_oracle", "cpu.paged"}) {
    CAPTURE(policy);
    const KvLedger right = run_policy(policy, small_problem());
    REQUIRE(audit(right, policy).empty());
    for (std::size_t i = 0; i < kKvCounts; ++i) {
      KvLedger wrong = right;
      ++wrong[static_cast<KvCount>(i)];
      CAPTURE(name_of(static_cast<KvCount>(i)));
      CHECK_FALSE(audit(wrong, policy).empty());
    }
    KvLedger shifted = right;  // the sum stays
    ++shifted[KvCount::token];
    --shifted[KvCount::free];
    CHECK(audit(shifted, policy).find("token is ") == 0);
  }
}

TEST_CASE("kv_memory: the audit of a policy that it cannot recount holds its balances", "[kv_memory][judge]") {
  const KvLedger right = run_policy("cpu.paged_prefix", small_problem());
  REQUIRE(audit(right, "cpu.paged_prefix").empty());
  for (const KvCount count : {KvCount::token, KvCount::cached, KvCount::free, KvCount::steps}) {
    KvLedger wrong = right;
    ++wrong[count];
    CHECK(audit(wrong, "cpu.paged_prefix").find("the sum of all slot states is ") == 0);
  }
  KvLedger lost = right;
  --lost[KvCount::generated];
  CHECK(audit(lost, "cpu.paged_prefix").find("generated is ") == 0);
}

TEST_CASE("kv_memory: a policy with a wrong ledger gets no time and no figures", "[kv_memory][judge]") {
  const std::unique_ptr<Device> host = make_cpu_device(1);
  const DeviceReport report;
  RowRunner runner(*host, nullptr, report,
                   {.measure = {.min_samples = 1, .max_samples = 2, .max_seconds = 0.05}, .limits = {}});
  const auto outcome = [&](const char* variant) {
    SweepRow row;
    row.operator_name = "kv_memory";
    row.variant = variant;
    row.problem = small_problem();
    return runner.run(row, [](std::string_view) {}).record;
  };
  const Record right = outcome("cpu.paged");
  CHECK(right.status == Status::ok);
  CHECK(right.metrics.size() > 10);
  const Record idle_record = outcome("cpu.test_idle");
  CHECK(idle_record.status == Status::incorrect);
  CHECK(idle_record.reason.find("generated is 0, the outputs of all requests that were not refused ") == 0);
  const Record boundless_record = outcome("cpu.test_boundless");
  CHECK(boundless_record.status == Status::error);
  CHECK(boundless_record.reason.find("the ledger's token is negative") == 0);
  for (const Record* wrong : {&idle_record, &boundless_record}) {
    CHECK_FALSE(wrong->timing);
    CHECK(wrong->metrics.empty());
  }
}

TEST_CASE("kv_memory: the shares of the pool sum to 1", "[kv_memory][operator]") {
  for (const char* policy : test::kPolicies) {
    CAPTURE(policy);
    const std::map<std::string, double> metrics = metrics_of(run_policy(policy, small_problem()));
    const double sum = metrics.at("kv_token_share_of_pool_ratio") + metrics.at("reserved_share_ratio") +
                       metrics.at("internal_share_ratio") + metrics.at("external_share_ratio") +
                       metrics.at("cached_share_ratio") + metrics.at("free_share_ratio");
    CHECK(std::abs(sum - 1) <= 6 * 0x1p-53);  // six roundings; the counts themselves sum exactly
    CHECK(metrics.at("kv_token_share_of_allocated_ratio") >= metrics.at("kv_token_share_of_pool_ratio"));
    CHECK(metrics.at("admitted_mean") <= metrics.at("admitted_peak"));
    CHECK(metrics.at("pool_slots") == 15728);
  }
}

TEST_CASE("kv_memory: figures under load are those of the steps in which a request waits", "[kv_memory][operator]") {
  // Three requests of 2, 3 and 4 tokens in three steps each, for two of which there is room: two run in steps 0 to 2,
  // while the third waits, and it alone in steps 3 to 5.
  const test::TemporaryTrace three(test::csv_of({{2, 3}, {2, 3}, {2, 3}}));
  const std::map<std::string, double> metrics = metrics_of(
      run_policy("cpu.reserve_max", test::problem_fields(three.path(), 10, {{"max_length", std::int64_t{4}}})));
  CHECK(metrics.at("loaded_steps") == 3);
  CHECK(metrics.at("admitted_under_load_mean") == 2);
  CHECK(metrics.at("admitted_mean") == 1.5);
  CHECK(metrics.at("kv_token_share_of_pool_under_load_ratio") == 18.0 / 30);
  CHECK(metrics.at("kv_token_share_of_pool_ratio") == 27.0 / 60);
}

TEST_CASE("kv_memory: figures under load are no numbers where no request ever waits", "[kv_memory][operator]") {
  const test::TemporaryTrace one(test::csv_of({{2, 3}}));
  const std::map<std::string, double> metrics =
      metrics_of(run_policy("cpu.paged", test::problem_fields(one.path(), 10)));
  CHECK(metrics.at("loaded_steps") == 0);
  CHECK(std::isnan(metrics.at("kv_token_share_of_pool_under_load_ratio")));
  CHECK(std::isnan(metrics.at("admitted_under_load_mean")));
  CHECK(metrics.at("kv_token_share_of_pool_ratio") == 9.0 / 30);
  CHECK(metrics.at("admitted_mean") == 1);
}

TEST_CASE("kv_memory: the text of the field trace names every synthetic trace", "[kv_memory][operator]") {
  const std::vector<FieldInfo>& fields = kv_memory().fields;
  const auto trace =
      std::find_if(fields.begin(), fields.end(), [](const FieldInfo& field) { return field.name == "trace"; });
  REQUIRE(trace != fields.end());
  for (const std::string& name : synthetic_names()) CHECK(trace->doc.find(name) != std::string::npos);
}

TEST_CASE("kv_memory: check.reference states the limits of the recount", "[kv_memory][judge]") {
  // 31,791 requests of one output each pass 500,000,000 slots looked at in a pool of 15,728, one less does not.
  const auto counted = [](int requests) {
    const test::TemporaryTrace trace(test::csv_of(std::vector<std::pair<int, int>>(requests, {1, 1})));
    return recount(test::parse_problem({{"trace", trace.path()}, {"requests", std::int64_t{0}}}), "cpu.paged")
        .has_value();
  };
  CHECK(counted(31'790));
  CHECK_FALSE(counted(31'791));
  CHECK(kv_memory().reference.find("500,000,000 requests x pool slots") != std::string::npos);
}
