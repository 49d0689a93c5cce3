// The seeds of the fuzzers are what they are called: a fuzzer whose seeds are all refused finds little.
#include "harness/results/compare.hpp"
#include "harness/run/journal.hpp"
#include "harness/sweep/json_reader.hpp"
#include "harness/sweep/sweep.hpp"
#include "tests/harness/run/child_run.hpp"

using namespace inferometer;

namespace {

std::string seed(const std::string& name) {
  const std::string text = test::read_text(std::string(INFEROMETER_SOURCE_DIR) + "/tests/fuzz/" + name);
  INFO(name);
  REQUIRE_FALSE(text.empty());
  return text;
}

}  // namespace

TEST_CASE("fuzz: configs among the seeds are swept", "[fuzz][sweep]") {
  CHECK(parse_sweep(seed("config_corpus/least"), "least", {}).rows.size() == 2);
  CHECK(parse_sweep(seed("config_corpus/whole"), "whole", {}).rows.size() == 12);
  CHECK_FALSE(parse_sweep(seed("config_corpus/conditions"), "conditions", {}).rows.empty());
}

TEST_CASE("fuzz: journals among the seeds hold rows", "[fuzz][journal]") {
  CHECK(parse_journal(seed("journal_corpus/header"), "header")->records.empty());
  CHECK(parse_journal(seed("journal_corpus/one_row"), "one_row")->records.size() == 1);
  CHECK(parse_journal(seed("journal_corpus/failed_row"), "failed_row")->records.size() == 2);
  CHECK(parse_journal(seed("journal_corpus/cut"), "cut")->records.empty());
}

TEST_CASE("fuzz: results among the seeds can be compared", "[fuzz][compare]") {
  for (const char* name : {"results_corpus/one_row", "results_corpus/shard"}) {
    const Json results = read_json(seed(name), name);
    CHECK(compare_results(results, results, 0.05).rows.size() == 1);
  }
  const Json empty = read_json(seed("results_corpus/gpu"), "gpu");
  CHECK(compare_results(empty, empty, 0.05).rows.empty());
}
