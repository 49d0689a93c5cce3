// Open-loop replays, the cost model and requests made of traces.
#include <vector>

#include "harness/operator/fields.hpp"
#include "kernels/serving/cost_model.hpp"
#include "kernels/serving/replay.hpp"
#include "kernels/serving/trace_requests.hpp"
#include "reference/serving/metrics.hpp"
#include "tests/kernels/kv_cache/pool_support.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

const ServingConfig kConfig{.slots = 2, .num_blocks = 20, .block_size = 4};

ServingRequest request(SequenceId id, std::int64_t arrival_ns, std::int64_t prompt, std::int64_t max_new) {
  return {.id = id, .arrival_ns = arrival_ns, .prompt = consecutive(0, prompt), .max_new = max_new};
}

}  // namespace

TEST_CASE("serving replay: a request waits for the step that runs when it comes, and its clock from its plan",
          "[serving][replay]") {
  CostModel model({.step_ns = 100});
  const std::vector<ServingRequest> requests{request(1, 50, 3, 2), request(2, 60, 3, 1), request(3, 1000, 3, 1)};
  std::vector<std::int64_t> rows;
  const Replay result =
      replay(kConfig, model, requests, [&](const StepBatch& b) { rows.push_back(std::ssize(b.rows)); });
  REQUIRE(result.records.size() == 3);
  CHECK(result.records[0].token_ns == std::vector<std::int64_t>{150, 250});
  CHECK(result.records[1].token_ns == std::vector<std::int64_t>{250});
  CHECK(ttft_ns(result.records[1]) == 190);
  CHECK(result.records[2].token_ns == std::vector<std::int64_t>{1100});  // the clock jumps over idle time
  CHECK(result.end_ns == 1100);
  CHECK(rows == std::vector<std::int64_t>{1, 2, 1});
  CHECK(result.ledger.steps == 3);
}

TEST_CASE("serving replay: what is refused is listed with its reason, and the rest is served", "[serving][replay]") {
  CostModel model({.step_ns = 1});
  const Replay result = replay(kConfig, model,
                               std::vector<ServingRequest>{request(1, 0, 3, 2), request(2, 0, 100, 2),
                                                           request(3, 0, 3, 0), request(1, 0, 3, 1)});
  REQUIRE(result.refused.size() == 2);
  CHECK(result.refused[0].id == 2);
  CHECK_THAT(result.refused[0].reason, contains_text("101 tokens, which need 26 blocks of 4; the pool has 20"));
  CHECK(result.refused[1].id == 1);
  CHECK_THAT(result.refused[1].reason, contains_text("has not ended"));
  CHECK(result.records.size() == 2);
  CHECK(replay(kConfig, model, {}).records.empty());
}

TEST_CASE("serving replay: arrivals out of order are refused", "[serving][replay]") {
  CostModel model({.step_ns = 1});
  CHECK_THROWS_AS(replay(kConfig, model, std::vector<ServingRequest>{request(1, 5, 3, 2), request(2, 4, 3, 2)}),
                  ProblemError);
  CHECK_THROWS_AS(replay(kConfig, model, std::vector<ServingRequest>{request(1, -1, 3, 2)}), ProblemError);
}

TEST_CASE("serving cost model: a step costs by its tokens, the keys they read and the pairs they form",
          "[serving][cost]") {
  const std::vector<TokenId> tokens(5);
  StepBatch batch;
  batch.rows.push_back({.sequence = 1, .tokens = std::span(tokens).first(1), .position = 9, .samples = true});
  batch.rows.push_back({.sequence = 2, .tokens = tokens, .position = 2, .samples = false});
  batch.tokens = 6;
  batch.padding_tokens = 4;  // nobody computes it
  CHECK(step_time_ns({.step_ns = 100}, batch) == 100);
  CHECK(step_time_ns({.token_ns = 2}, batch) == 12);
  CHECK(step_time_ns({.key_ns = 1}, batch) == 10 + 7);
  CHECK(step_time_ns({.pair_ns = 1}, batch) == 3 + 4 + 5 + 6 + 7);  // single tokens only read
  CHECK(step_time_ns({.kernels_ns = 50, .one_token_saved_ns = 7}, batch) == 50);
  CHECK(step_time_ns({.first_key_ns = 1, .first_keys_ns = 12}, batch) == 10);  // the prompt's keys are no part of it
  CHECK(step_time_ns({.first_key_ns = 1, .first_keys_ns = 9}, batch) == 9);
  CHECK(step_time_ns({.few_tokens = 5, .many_tokens_ns = 3}, batch) == 3);
  CHECK(step_time_ns({.few_tokens = 6, .many_tokens_ns = 3}, batch) == 0);
  CHECK(step_time_ns({.prompt_step_ns = 1, .prompt_kernels_ns = 20, .prompt_row_ns = 300}, batch) == 321);
  CHECK(step_time_ns({.weights_ns = 18, .token_ns = 4}, batch) == 24);
  CHECK(step_time_ns({.weights_ns = 18, .weights_hidden = false, .token_ns = 4}, batch) == 30);
  CHECK(step_time_ns({.weights_ns = 18, .weights_hidden = false, .token_ns = 4, .sustained = 0.5}, batch) == 48);

  StepBatch one;
  one.rows.push_back(batch.rows.front());
  one.tokens = 1;
  CHECK(step_time_ns({.kernels_ns = 50, .one_token_saved_ns = 7}, one) == 43);
  CHECK(step_time_ns({.prompt_step_ns = 1, .prompt_kernels_ns = 20, .prompt_row_ns = 300}, one) == 0);

  std::vector<TokenId> next(2, -7);
  CHECK(CostModel({.step_ns = 1.6}).step(batch, next).ns == 2);
  const StepTime time =
      CostModel({.step_ns = 100, .prompt_step_ns = 10, .kernels_ns = 5, .host_ns = 30}).step(batch, next);
  CHECK(time.ns == 115);
  CHECK(time.busy_ns == 5);
  CHECK(time.host_ns == 30);
  CHECK(next[0] >= 0);
  CHECK(next[1] == -7);  // it does not sample
  CHECK_THROWS_AS(CostModel({.token_ns = -1}), ProblemError);
  CHECK_THROWS_AS(CostModel({.sustained = 0}), ProblemError);
}

TEST_CASE("serving cost model: its tokens are the same under every policy", "[serving][cost]") {
  CostModel model({.step_ns = 10, .token_ns = 1});
  std::vector<ServingRequest> requests;
  for (SequenceId id = 0; id < 10; ++id) requests.push_back(request(id, 7 * id, 1 + id, 12 - id));
  std::vector<std::vector<TokenId>> first(10);
  for (const ServingPolicy policy : serving_policies()) {
    ServingConfig config = kConfig;
    config.policy = policy;
    config.num_blocks = 5;
    if (policy == ServingPolicy::chunked) config.token_budget = 4;
    for (const RequestRecord& record : replay(config, model, requests).records) {
      std::vector<TokenId>& outputs = first[static_cast<std::size_t>(record.id)];
      if (outputs.empty()) outputs = record.outputs;
      CHECK(record.outputs == outputs);
      CHECK(std::ssize(record.outputs) == record.max_new);
    }
  }
}

TEST_CASE("serving: requests of a trace share tokens where their prefix ids agree", "[serving][trace]") {
  const KvRequest a{.id = 0, .arrival_ms = 4, .prompt = 1100, .output = 5, .hash_ids = {7, 8, 9}};
  const KvRequest b{.id = 1, .arrival_ms = 6, .prompt = 1200, .output = 5, .hash_ids = {7, 8, 10}};
  const ServingRequest one = serving_request(a, 2, 32'000);
  const ServingRequest other = serving_request(b, 2, 32'000);
  CHECK(one.arrival_ns == 2'000'000);
  CHECK(one.max_new == 5);
  REQUIRE(one.prompt.size() == 1100);
  REQUIRE(other.prompt.size() == 1200);
  const std::size_t same = 2 * kHashBlockTokens;
  CHECK(std::equal(one.prompt.begin(), one.prompt.begin() + same, other.prompt.begin()));
  CHECK_FALSE(std::equal(one.prompt.begin() + same, one.prompt.end(), other.prompt.begin() + same));
  for (const TokenId token : one.prompt) CHECK((token >= 0 && token < 32'000));
  CHECK(serving_request(b, 0, 32'000).arrival_ns == 0);
  CHECK_THROWS_AS(serving_request(a, -1, 32'000), ProblemError);
  CHECK_THROWS_AS(serving_request(a, 1, 0), ProblemError);
}
