// A decoder on the CPU behind the engine: the same tokens in every policy, whatever the cache is made of.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/serving/serve.hpp"
#include "reference/decoder/chosen_tokens.hpp"
#include "reference/serving/run_audit.hpp"
#include "tests/reference/serving/serving_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// 5 short requests, so that a row takes a fraction of a second; a cache of so many tokens.
Fields few(std::int64_t block_size, std::int64_t tokens, std::int64_t kv_bits = 16) {
  return {{"requests", integer(5)},
          {"max_prompt", integer(30)},
          {"max_output", integer(16)},
          {"block_size", integer(block_size)},
          {"pool_bytes", std::get<std::int64_t>(pool_of(tokens)) * kv_bits / 14},  // and room for scales
          {"kv_bits", integer(kv_bits)}};
}

std::vector<std::vector<std::int32_t>> outputs_of(const ServingRun& run) {
  std::vector<std::vector<std::int32_t>> outputs;
  for (const auto& request : run.requests) outputs.push_back(request->outputs);
  return outputs;
}

}  // namespace

TEST_CASE("serving decoder: static, iteration, continuous, chunked, preempted, paged and contiguous: the same tokens",
          "[serving][decoder]") {
  const auto expected = outputs_of(run_serving("cpu.static", few(16, 1024)));
  for (const char* policy : {"iteration", "continuous", "chunked"})
    for (const auto& [block_size, tokens] : {std::pair{16, 1024}, std::pair{1, 64}, std::pair{0, 512}}) {
      CAPTURE(policy, block_size, tokens);
      const ServingRun run = run_serving(std::string("cpu.") + policy, few(block_size, tokens));
      CHECK(outputs_of(run) == expected);
      if (tokens == 64 && policy != std::string("iteration")) CHECK(run.ledger.preemptions > 0);
    }
}

TEST_CASE("serving decoder: quantised caches give the same tokens preempted as at once", "[serving][decoder]") {
  const ServingRun preempted = run_serving("cpu.continuous", few(1, 64, 4));
  CHECK(preempted.ledger.preemptions > 0);
  CHECK(outputs_of(preempted) == outputs_of(run_serving("cpu.static", few(16, 1024, 4))));
}

TEST_CASE("serving decoder: a second run finds nothing of the first in its cache", "[serving][decoder]") {
  Fields fields = few(16, 1024);
  fields.emplace_back("prefix_reuse", true);
  const ServingRun first = run_serving("cpu.continuous", fields);
  const ServingRun second = run_serving("cpu.continuous", fields);
  CHECK(outputs_of(first) == outputs_of(second));
  CHECK(second.ledger.computed_tokens == first.ledger.computed_tokens);
  CHECK(second.ledger.reused_tokens == 0);  // these prompts have nothing in common
}

TEST_CASE("serving decoder: a token that is not the greedy one is found", "[serving][judge]") {
  const Fields fields = few(16, 1024);
  const ServingProblem problem = serving_problem(fields);
  const ServingRun right = run_serving("cpu.continuous", fields);
  REQUIRE(audit_tokens(problem, right).empty());
  for (const std::int32_t wrong_token : {0, 511, 512, -1}) {
    ServingRun wrong = right;
    std::int32_t& last = wrong.requests[1]->outputs.back();
    last = last == wrong_token ? 7 : wrong_token;
    CAPTURE(wrong_token);
    CHECK(audit_tokens(problem, wrong).starts_with("request 1, new token "));
  }
  for (const std::int32_t no_token : {512, -1}) {  // further outputs are computed from it
    ServingRun wrong = right;
    wrong.requests[1]->outputs.front() = no_token;
    CHECK(audit_tokens(problem, wrong) ==
          "request 1, new token 0: " + std::to_string(no_token) + " is no token of the vocabulary of 512");
  }
  ServingRun swapped = right;
  std::swap(swapped.requests[1]->outputs, swapped.requests[2]->outputs);
  CHECK_FALSE(audit_tokens(problem, swapped).empty());
}

TEST_CASE("serving decoder: how far below the greatest a token may lie is what the judge of all decoders allows",
          "[serving][judge]") {
  const SeededWeights weights(decoder_shape("tiny"), kServingWeightSeed);
  // Beyond that much of the logits' root mean square, a quarter more than the limit of this shape, none passes.
  for (const auto& [kv_bits, too_far] : {std::pair<std::int64_t, double>{16, 0.0125}, {8, 0.05}, {4, 0.2}}) {
    int refused = 0;
    const Fields fields = few(16, 1024, kv_bits);
    const ServingProblem problem = serving_problem(fields);
    ServingRun run = run_serving("cpu.continuous", fields);
    for (const KvRequest& request : served_requests(problem)) {
      CAPTURE(kv_bits, request.id);
      std::vector<std::int32_t> prompt;
      make_tokens(request, 0, request.prompt, prompt);
      for (std::int32_t& token : prompt) token %= 512;
      std::vector<std::int32_t>& outputs = run.requests[static_cast<std::size_t>(request.id)]->outputs;
      std::vector<std::int32_t> in_front = prompt;
      in_front.insert(in_front.end(), outputs.begin(), outputs.end() - 1);
      DecoderMatrix last = decoder_logits(weights, in_front, {.kv = kv_bits}, std::ssize(in_front) - 1);
      const double far = last.maxCoeff() - too_far * std::sqrt(last.squaredNorm() / 512);
      // Takes the place of the last token, from which nothing follows.
      const auto sentence_of = [&](Eigen::Index token) {
        const std::int32_t right = std::exchange(outputs.back(), static_cast<std::int32_t>(token));
        const std::string sentence = audit_chosen(weights, prompt, outputs, {.kv = kv_bits}, 1);
        CHECK(audit_tokens(problem, run) ==
              (sentence.empty() ? "" : "request " + std::to_string(request.id) + ", " + sentence));
        outputs.back() = right;
        return sentence;
      };
      last(0, outputs.back()) = -1e9;
      Eigen::Index next = 0;
      last.row(0).maxCoeff(&next);
      refused += sentence_of(next).empty() ? 0 : 1;
      (last.array() < far).select(last, -1e9).row(0).maxCoeff(&next);
      CHECK(sentence_of(next) != "");
    }
    CAPTURE(kv_bits);
    CHECK(refused > 0);
  }
}

TEST_CASE("serving decoder: a model too large for a CPU is refused in a sentence", "[serving][decoder]") {
  const VariantRun run = run_variant("serving", "cpu.continuous", {{"requests", integer(2)}});
  CHECK(run.unsupported == "model must be tiny on a CPU, got llama3_8b");
  const VariantRun chunked = run_variant("serving", "cpu.chunked",
                                         serving_fields({{"token_budget", integer(3)}, {"pool_bytes", pool_of(1024)}}));
  CHECK(chunked.unsupported == "token_budget must be at least the 4 slots, got 3");
}

TEST_CASE("serving decoder: materialised attention is refused over pages and over codes, in a sentence", "[serving]") {
  const auto refusal = [](std::int64_t block_size, std::int64_t kv_bits, const char* attention) {
    Fields fields = few(block_size, 1024, kv_bits);
    fields.emplace_back("attention", std::string(attention));
    return attention_impossible(serving_problem(fields)).value_or("");
  };
  CHECK(refusal(0, 16, "materialized").empty());
  CHECK(refusal(16, 8, "flash").empty());
  CHECK(
      refusal(16, 16, "materialized") ==
      "attention must be flash over blocks of 16 tokens: materialized reads a prompt's keys from one piece of memory, "
      "that of block_size 0");
  CHECK(refusal(0, 8, "materialized") ==
        "attention must be flash with kv_bits 8: materialized reads keys and values of 16 bits");
}
