// The operator around generation on the CPU: its variants, what it refuses, and a judge that finds wrong tokens.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/operator/registry.hpp"
#include "reference/generation/judged_tokens.hpp"
#include "reference/generation/token_times.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {
namespace {

const Operator& op() { return *find_operator("generation"); }

Fields fields(std::int64_t batch, std::int64_t prompt_tokens, std::int64_t new_tokens, std::int64_t weight_bits = 16,
              std::int64_t kv_bits = 16) {
  return {{"batch", batch},
          {"prompt_tokens", prompt_tokens},
          {"new_tokens", new_tokens},
          {"weight_bits", weight_bits},
          {"kv_bits", kv_bits}};
}

GenerationProblem parse(const Fields& given) { return *static_cast<const GenerationProblem*>(op().parse(given).get()); }

std::string refused(const Fields& given) {
  try {
    op().parse(given);
  } catch (const ProblemError& error) {
    return error.what();
  }
  return "accepted";
}

// The tokens of a run that the judge passes.
std::vector<std::int32_t> tokens_of(const std::string& variant, const Fields& given) {
  const VariantRun run = run_variant("generation", variant, given);
  REQUIRE(run.check.reason.empty());
  const GenerationProblem p = parse(given);
  const auto* const result = reinterpret_cast<const std::int32_t*>(run.raw.at("result").data());
  return {result + p.tokens_at(), result + p.times_at()};
}

TEST_CASE("generation: with a cache and without one the CPU gives the same tokens, which the judge passes",
          "[generation][reference]") {
  for (const Fields& given :
       {fields(1, 1, 1), fields(2, 9, 20), fields(1, 7, 6, 4, 16), fields(1, 7, 6, 8, 8), fields(1, 7, 6, 16, 4)})
    CHECK(tokens_of("cpu.recompute", given) == tokens_of("cpu.cached", given));
}

TEST_CASE("generation: the judge finds a token that is not the greatest, wherever it stands",
          "[generation][reference]") {
  const Fields given = fields(2, 9, 8);
  const GenerationProblem p = parse(given);
  const std::vector<std::int32_t> right = tokens_of("cpu.cached", given);
  CHECK(audit_tokens(p, right, 2) == "");
  for (const std::size_t at : {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{15}}) {
    std::vector<std::int32_t> wrong = right;
    wrong[at] = (wrong[at] + 1) % 512;
    const std::string place = "sequence " + std::to_string(at / 8) + ", new token " + std::to_string(at % 8) + ": ";
    CHECK(audit_tokens(p, wrong, 2).substr(0, place.size()) == place);
    wrong[at] = 512;
    CHECK(audit_tokens(p, wrong, 2) == place + "512 is no token of the vocabulary of 512");
  }
  std::vector<std::int32_t> swapped(right.begin() + 8, right.end());  // each sequence the other's tokens
  swapped.insert(swapped.end(), right.begin(), right.begin() + 8);
  CHECK(audit_tokens(p, swapped, 2) != "");
}

TEST_CASE("generation: another model, other bits and another prompt are found too", "[generation][reference]") {
  const std::vector<std::int32_t> right = tokens_of("cpu.cached", fields(1, 9, 16));
  GenerationProblem p = parse(fields(1, 9, 16, 4));
  CHECK(audit_tokens(p, right, 2) != "");
  p = parse(fields(1, 9, 16));
  p.model_seed = 2;
  CHECK(audit_tokens(p, right, 2) != "");
  p = parse(fields(1, 10, 16));
  CHECK(audit_tokens(p, right, 2) != "");
}

TEST_CASE("generation: what cannot be is refused in a sentence", "[generation][reference]") {
  CHECK(refused(fields(1, 8, 8, 5)) == "weight_bits must be 16, 8 or 4, got 5");
  CHECK(refused(fields(1, 8, 8, 16, 6)) == "kv_bits must be 16, 8 or 4, got 6");
  CHECK(refused(fields(1, 2000, 49)) == "prompt_tokens + new_tokens must be at most the 2048 tokens of tiny, got 2049");
  Fields large = fields(1, 1000, 7000);
  large.emplace_back("model", std::string("llama3_8b"));
  CHECK(
      refused(large) ==
      "prompt_tokens + new_tokens must be at most 3113 with llama3_8b, so that the CPU can judge a sequence, got 8000");
}

TEST_CASE("generation: the exponent is 1 for tokens of equal time, and 2 where each takes as long as all before",
          "[generation][reference]") {
  std::vector<double> equal(256, 5.0);
  std::vector<double> growing;
  for (int i = 0; i < 256; ++i) growing.push_back(2.0 * i + 1);  // sums: squares
  CHECK(std::abs(fitted_exponent(equal) - 1) < 1e-9);
  CHECK(std::abs(fitted_exponent(growing) - 2) < 1e-9);
  CHECK(fitted_exponent(std::vector<double>(7, 1.0)) == 0);
}

TEST_CASE("generation: the median of an even number of tokens lies between the middle two", "[generation][reference]") {
  const GenerationProblem p = parse(fields(2, 9, 17));
  std::vector<std::int32_t> result(static_cast<std::size_t>(p.result_elements()), 0);
  for (std::int64_t i = 0; i < 17; ++i) store_time(1000 + i, result.data() + p.times_at() + 2 * i);
  std::map<std::string, double> metrics;
  for (const Metric& metric : generation_metrics(p, result)) metrics[metric.name] = metric.value;
  CHECK(metrics.at("token_at_first_ns") == 1001.5);
  CHECK(metrics.at("token_at_last_ns") == 1015.5);
}

TEST_CASE("generation: metrics are those of the times in the result", "[generation][reference]") {
  const GenerationProblem p = parse(fields(2, 9, 16));
  std::vector<std::int32_t> result(static_cast<std::size_t>(p.result_elements()), 0);
  for (std::int64_t i = 0; i < 16; ++i)
    store_time(i == 0 ? 3'000'000'000 : 1000 + i, result.data() + p.times_at() + 2 * i);
  std::map<std::string, double> metrics;
  for (const Metric& metric : generation_metrics(p, result)) metrics[metric.name] = metric.value;
  CHECK(metrics.at("first_token_ns") == 3e9);
  CHECK(metrics.at("token_at_first_ns") == 1001);
  CHECK(metrics.at("token_at_last_ns") == 1015);
  const double decoded = 15 * 1008;
  CHECK(std::abs(metrics.at("decode_tokens_per_s") - 2 * 15 * 1e9 / decoded) < 1e-6);
  CHECK(std::abs(metrics.at("tokens_per_s") - 2 * 16 * 1e9 / (3e9 + decoded)) < 1e-9);
  // 2 sequences of 24 tokens, 2 layers, K and V of 2 heads of 64 f16.
  CHECK(metrics.at("kv_cache_bytes") == 2.0 * 24 * 2 * 2 * 2 * 64 * 2);
}

}  // namespace
}  // namespace inferometer::test
