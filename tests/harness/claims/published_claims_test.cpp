// The project's own list of claims, judged by the published results, and by files that are not published yet.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/claims/claims_report.hpp"
#include "harness/claims/verdict.hpp"
#include "tests/harness/claims/made_up.hpp"
#include "tests/harness/run/child_run.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

namespace fs = std::filesystem;

const fs::path kProject = INFEROMETER_SOURCE_DIR;

std::vector<Claim> our_claims() { return load_claims((kProject / "experiments/claims.json").string()); }

std::vector<NamedResults> published(const std::string& device) {
  std::vector<NamedResults> files;
  for (const auto& entry : fs::directory_iterator(kProject / "results" / device))
    if (entry.path().extension() == ".json")
      files.push_back({.path = entry.path().string(), .json = Json::parse(read_text(entry.path().string()))});
  return files;
}

// Of machines whose GPU, if any, took no part.
std::vector<NamedResults> published_without_gpu() {
  std::vector<NamedResults> files = published("amd_epyc");
  const std::vector<NamedResults> more = published("intel_xeon");
  files.insert(files.end(), more.begin(), more.end());
  return files;
}

std::map<std::string, JudgedClaim> judged_by(std::vector<NamedResults> files,
                                             const std::vector<NamedResults>& more = {}) {
  files.insert(files.end(), more.begin(), more.end());
  const Evidence evidence(files);
  std::map<std::string, JudgedClaim> judged;
  for (const Claim& claim : our_claims()) judged[claim.id] = judge(claim, evidence);
  return judged;
}

// A row of the stack on a GPU: output tokens a second, and how busy slots and GPU are.
Record served(const std::string& variant, Fields given, double tokens_per_s, double occupancy, double busy,
              std::int64_t requests) {
  for (const auto& [name, value] :
       Fields{{"model", "llama3_8b"}, {"trace", "synthetic_azure_conv"}, {"requests", requests}})
    given.emplace_back(name, value);
  Record record = made_up_row("serving", variant, given);
  record.metrics = {{"output_tokens_per_s", tokens_per_s},
                    {"slot_occupancy_ratio", occupancy},
                    {"gpu_busy_ratio", busy},
                    {"simulated", 0}};
  return record;
}

}  // namespace

TEST_CASE("claims: with the published files each of the ten claims has a verdict", "[claims][results]") {
  const auto judged = judged_by(published("h200"), published_without_gpu());
  CHECK(judged.size() == 10);
  for (const auto& [id, claim] : judged) {
    INFO(id << ": " << claim.reason);
    CHECK(claim.verdict != ClaimVerdict::not_tested);
    CHECK_FALSE(claim.reason.empty());
    CHECK_FALSE(claim.files.empty());
  }
}

TEST_CASE("claims: without files of a GPU its claims are not tested, and the others keep their verdicts",
          "[claims][results]") {
  const auto judged = judged_by(published_without_gpu());
  for (const char* id : {"flash_attention", "paged_attention_cost", "int4_kernel_speed"}) {
    INFO(id);
    CHECK(judged.at(id).verdict == ClaimVerdict::not_tested);
    CHECK_THAT(judged.at(id).reason, contains_text("not tested here: "));
    CHECK_THAT(judged.at(id).reason, contains_text("experiments/"));
  }
  for (const char* id :
       {"kv_memory_use", "quantized_memory", "gptq_awq_accuracy", "continuous_batching", "stack_throughput"}) {
    INFO(id);
    CHECK(judged.at(id).verdict != ClaimVerdict::not_tested);
  }
}

TEST_CASE("claims: figures of serving are said to be simulated as long as no GPU served", "[claims][results]") {
  const auto judged = judged_by(published_without_gpu());
  CHECK(judged.at("stack_throughput").evidence == EvidenceKind::simulated);
  CHECK(judged.at("continuous_batching").evidence == EvidenceKind::simulated);
}

TEST_CASE("claims: the published files decide the figures of serving by what a GPU measured", "[claims][results]") {
  const auto judged = judged_by(published("h200"), published_without_gpu());
  for (const char* id : {"stack_throughput", "continuous_batching"}) {
    INFO(id);
    CHECK(judged.at(id).evidence == EvidenceKind::measured);
  }
}

TEST_CASE("claims: rows of a GPU that serves take the place of simulated ones", "[claims][results]") {
  const Fields ground{{"attention", "materialized"},
                      {"block_size", std::int64_t{0}},
                      {"graphs", false},
                      {"weight_bits", std::int64_t{16}},
                      {"kv_bits", std::int64_t{16}}};
  const Fields stack{{"attention", "flash"},
                     {"block_size", std::int64_t{16}},
                     {"graphs", true},
                     {"weight_bits", std::int64_t{4}},
                     {"kv_bits", std::int64_t{8}}};
  const auto with_speeds = [&](double before, double after, std::int64_t requests = 256) {
    return judged_by(published_without_gpu(),
                     {made_up_file("cuda.json", {served("cuda.static", ground, before, 0.3, 0.3, requests),
                                                 served("cuda.continuous", stack, after, 0.9, 0.9, requests)})});
  };
  const auto fast = with_speeds(1000, 4000);
  CHECK(fast.at("stack_throughput").evidence == EvidenceKind::measured);
  CHECK(fast.at("stack_throughput").verdict == ClaimVerdict::holds);
  CHECK_THAT(fast.at("stack_throughput").reason, contains_text("measured 4.00x, simulated 2."));
  CHECK_THAT(claims_markdown_brief({fast.at("stack_throughput")}),
             contains_text("the whole stack: 4.00x (simulated: 2."));
  CHECK(fast.at("continuous_batching").evidence == EvidenceKind::measured);
  CHECK(fast.at("continuous_batching").verdict == ClaimVerdict::holds);
  CHECK(with_speeds(1000, 2000).at("stack_throughput").verdict == ClaimVerdict::does_not_hold);
  const auto few = with_speeds(1000, 2000, 32);
  CHECK(few.at("stack_throughput").evidence == EvidenceKind::simulated);  // a request a slot: mostly the end of a batch
}

TEST_CASE("claims: generation without a cache on a GPU decides the claim about its growth", "[claims][results]") {
  const auto generated = [](const std::string& variant, double exponent) {
    std::vector<Record> rows;
    for (const std::int64_t tokens : {64, 128, 256}) {
      Record row = made_up_row("generation", variant,
                               {{"model", "llama3_8b"}, {"prompt_tokens", std::int64_t{8}}, {"new_tokens", tokens}});
      row.timing->headline_ns = row.timing->isolated.median_ns = std::pow(static_cast<double>(tokens), exponent);
      row.metrics = {{"exponent", exponent}};
      rows.push_back(row);
    }
    return made_up_file(variant + ".json", rows);
  };
  const auto verdict = [&](double without, double with) {
    return judged_by({generated("cuda.recompute", without), generated("cuda.paged", with)})
        .at("kv_cache_growth")
        .verdict;
  };
  CHECK(verdict(2, 1) == ClaimVerdict::holds);
  CHECK(verdict(1, 1) == ClaimVerdict::holds_in_part);
  CHECK(verdict(1, 2) == ClaimVerdict::does_not_hold);
}

TEST_CASE("claims: what the list would run are sweeps with rows, and its parts name sweeps of their operator",
          "[claims]") {
  for (const Claim& claim : our_claims()) {
    for (const ClaimRun& run : claim.runs) {
      INFO(claim.id << ": " << run.experiment);
      CHECK_FALSE(load_sweep((kProject / run.experiment).string(), run.options).rows.empty());
    }
    for (const ClaimPart& part : claim.parts) {
      INFO(claim.id << ": " << part.name);
      CHECK(load_sweep((kProject / part.experiment).string(), {}).operator_name == part.op->name);
    }
  }
}

TEST_CASE("claims: sources are cited, by an address where they have one", "[claims]") {
  for (const Claim& claim : our_claims()) {
    INFO(claim.id);
    CHECK_THAT(claim.source, contains_text("https://"));
  }
}
