// The simulation against the recount, which steps through every token: equal to the last slot-step, on random problems.
#include <random>
#include <string>

#include "reference/kv_memory/recount.hpp"
#include "tests/reference/kv_memory/kv_memory_runs.hpp"

using namespace inferometer;
using test::TemporaryTrace;

namespace {

class RandomProblem {
 public:
  explicit RandomProblem(unsigned seed) : random_(seed), trace_(rows()) {}

  Fields fields() {
    const std::int64_t slots = between(20, 400);
    return test::problem_fields(trace_.path(), slots,
                                {{"block_size", between(1, 12)},
                                 {"max_length", between(16, 90)},
                                 {"contiguous", word("first_fit", "buddy")},
                                 {"order", word("fcfs", "shortest_first")},
                                 {"arrivals", word("all_at_start", "trace")},
                                 {"step_ms", between(1, 2) == 1 ? 30.0 : 0.7},
                                 {"watermark_ratio", static_cast<double>(between(0, 30)) / 100}});
  }

 private:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  std::string word(const char* a, const char* b) { return between(0, 1) == 0 ? a : b; }

  std::string rows() {
    std::string text = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
    std::int64_t ms = 0;
    for (std::int64_t i = between(1, 80); i > 0; --i, ms += between(0, 1) * between(0, 400)) {
      const std::string digits = std::to_string(1000 + ms % 1000).substr(1);
      text += "2023-11-16 18:15:" + std::to_string(10 + ms / 1000) + "." + digits + "," +
              std::to_string(between(0, 50)) + "," +
              std::to_string(between(0, 1) == 0 ? between(0, 4) : between(1, 60)) + "\n";
    }
    return text;
  }

  std::mt19937 random_;
  TemporaryTrace trace_;
};

}  // namespace

TEST_CASE("kv_memory: the simulation equals stepping through every token", "[kv_memory][recount]") {
  std::int64_t preemptions = 0;
  std::int64_t external = 0;
  std::int64_t refused = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    RandomProblem problem(seed);
    const Fields fields = problem.fields();
    CAPTURE(seed, to_string(fields));
    for (const char* policy : test::kPolicies) {
      CAPTURE(policy);
      // The audit recounts and compares already; here it must have had something to compare.
      const KvLedger ledger = test::run_policy(policy, fields);
      const auto counted = recount(test::parse_problem(fields), policy);
      REQUIRE(counted.has_value() == (std::string_view(policy) != "cpu.paged_prefix"));
      if (counted) CHECK(*counted == ledger);
      CHECK(ledger.slot_steps() == ledger[KvCount::pool_slots] * ledger[KvCount::steps]);
      preemptions += ledger[KvCount::preemptions];
      external += ledger[KvCount::external];
      refused += ledger[KvCount::refused];
    }
  }
  // The problems were hard enough to mean something.
  CHECK(preemptions > 100);
  CHECK(external > 1000);
  CHECK(refused > 100);
}

TEST_CASE("kv_memory: without shared prompts paged_prefix gives every slot the same state but for the cached ones",
          "[kv_memory][recount]") {
  for (unsigned seed = 200; seed < 240; ++seed) {
    RandomProblem problem(seed);
    const Fields fields = problem.fields();
    CAPTURE(seed, to_string(fields));
    KvLedger plain = test::run_policy("cpu.paged", fields);
    KvLedger prefix = test::run_policy("cpu.paged_prefix", fields);
    prefix[KvCount::free] += prefix[KvCount::cached];
    prefix[KvCount::cached] = 0;
    CHECK(prefix == plain);
  }
}

TEST_CASE("kv_memory: problems too large to step through are not recounted", "[kv_memory][recount]") {
  CHECK(recount(test::parse_problem({{"requests", std::int64_t{50}}}), "cpu.paged"));
  CHECK_FALSE(recount(test::parse_problem({{"requests", std::int64_t{10'000}}}), "cpu.paged"));
  CHECK_FALSE(recount(test::parse_problem({{"requests", std::int64_t{50}}}), "cpu.paged_prefix"));
  CHECK_FALSE(recount(test::parse_problem({{"requests", std::int64_t{50}}}), "cpu.of_an_author"));
}
