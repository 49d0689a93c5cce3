// The GPU's ways to generate: right by the judge, and the same tokens in all of them.
#include <cstdint>
#include <string>
#include <vector>

#include "reference/generation/problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {
namespace {

struct Case {
  std::int64_t batch;
  std::int64_t prompt_tokens;
  std::int64_t new_tokens;
  std::int64_t weight_bits = 16;
  std::int64_t kv_bits = 16;
};

Fields fields(const Case& c) {
  return {{"model", std::string("tiny")},     {"batch", c.batch},
          {"prompt_tokens", c.prompt_tokens}, {"new_tokens", c.new_tokens},
          {"weight_bits", c.weight_bits},     {"kv_bits", c.kv_bits},
          {"model_seed", std::int64_t{35}}};
}

// The tokens of a run that the judge passes, and no time that is negative.
std::vector<std::int32_t> tokens_of(const std::string& variant, const Case& c) {
  const VariantRun run = run_variant("generation", variant, fields(c));
  INFO(variant << ", " << to_string(fields(c)));
  REQUIRE(run.unsupported.empty());
  REQUIRE(run.check.reason.empty());
  const auto* const result = reinterpret_cast<const std::int32_t*>(run.raw.at("result").data());
  const GenerationProblem p{.batch = c.batch, .prompt_tokens = c.prompt_tokens, .new_tokens = c.new_tokens};
  for (std::int64_t i = 0; i < 2 * p.new_tokens; ++i) CHECK(result[p.times_at() + i] >= 0);
  return {result + p.tokens_at(), result + p.times_at()};
}

TEST_CASE("generation: every variant on the GPU passes the judge", "[generation][gpu]") {
  for (const char* variant : {"cuda.recompute", "cuda.contiguous", "cuda.paged"})
    for (const Case& c : {Case{1, 1, 1}, Case{1, 1, 20}, Case{3, 17, 40}, Case{5, 300, 3}, Case{2, 33, 9, 4, 16},
                          Case{2, 33, 9, 8, 8}, Case{2, 33, 9, 16, 4}})
      tokens_of(variant, c);
}

TEST_CASE("generation: with a cache, paged or contiguous, the GPU gives the same tokens", "[generation][gpu]") {
  for (const std::int64_t kv_bits : {16, 8, 4}) {
    const Case c{.batch = 3, .prompt_tokens = 17, .new_tokens = 40, .kv_bits = kv_bits};
    CHECK(tokens_of("cuda.paged", c) == tokens_of("cuda.contiguous", c));
  }
}

TEST_CASE("generation: where choices are clear, all variants give the same tokens", "[generation][gpu]") {
  const Case c{.batch = 2, .prompt_tokens = 9, .new_tokens = 12};
  const std::vector<std::int32_t> expected = tokens_of("cpu.cached", c);
  for (const char* variant : {"cpu.recompute", "cuda.recompute", "cuda.contiguous", "cuda.paged"})
    CHECK(tokens_of(variant, c) == expected);
}

}  // namespace
}  // namespace inferometer::test
