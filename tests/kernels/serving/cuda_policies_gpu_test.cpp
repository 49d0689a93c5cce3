// A decoder on the GPU behind the engine. The judge holds its tokens against the equations, within what f16 moves; here
// policies are held against each other, as far as f16 cannot turn a choice.
#include <algorithm>
#include <string>
#include <vector>

#include "reference/decoder/equations.hpp"
#include "tests/reference/serving/serving_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// Activations in f16 move logits by some 0.003: choices that are this much clearer are the same in any batch.
constexpr double kClear = 0.01;

// For each request, how many outputs follow from clear choices alone: all that is said up to the first that is not.
std::vector<std::size_t> clear_outputs(const ServingProblem& p, const ServingRun& run) {
  const DecoderShape& shape = decoder_shape(p.model);
  const SeededWeights weights(shape, kServingWeightSeed);
  std::vector<std::size_t> clear;
  for (const KvRequest& request : served_requests(p)) {
    const std::vector<std::int32_t>& outputs = run.requests[static_cast<std::size_t>(request.id)]->outputs;
    std::vector<std::int32_t> tokens;
    make_tokens(request, 0, request.prompt, tokens);
    for (std::int32_t& token : tokens) token %= static_cast<std::int32_t>(shape.vocabulary);
    tokens.insert(tokens.end(), outputs.begin(), outputs.end());
    const DecoderMatrix logits = decoder_logits(weights, tokens, {.weights = p.weight_bits, .kv = p.kv_bits});
    std::size_t count = 0;
    for (; count < outputs.size(); ++count) {
      Eigen::RowVectorXd row = logits.row(request.prompt - 1 + static_cast<std::int64_t>(count));
      const double chosen = row[outputs[count]];
      row[outputs[count]] = -1e30;
      if (chosen - row.maxCoeff() < kClear) break;
    }
    clear.push_back(count);
  }
  return clear;
}

Fields few(std::int64_t block_size, std::int64_t tokens, bool graphs = true) {
  return {{"requests", integer(8)},
          {"block_size", integer(block_size)},
          {"pool_bytes", pool_of(tokens)},
          {"graphs", graphs}};
}

Fields materialized(Fields fields) {
  fields.emplace_back("attention", std::string("materialized"));
  return fields;
}

}  // namespace

TEST_CASE(
    "serving GPU: all policies, paged, contiguous, preempted, with and without graphs, by either attention, give the "
    "same clear tokens",
    "[serving][gpu]") {
  const ServingRun first = run_serving("cuda.static", few(16, 1024));
  const std::vector<std::size_t> clear = clear_outputs(serving_problem(few(16, 1024)), first);
  std::size_t compared = 0;
  for (const char* policy : kServingPolicies)
    for (const Fields& fields :
         {few(16, 1024), few(16, 160), few(0, 512), few(16, 1024, false), materialized(few(0, 512))}) {
      CAPTURE(policy);
      const ServingRun run = run_serving(std::string("cuda.") + policy, fields);
      for (std::size_t request = 0; request < clear.size(); ++request) {
        CAPTURE(request);
        const auto& expected = first.requests[request]->outputs;
        CHECK(std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(clear[request]),
                         run.requests[request]->outputs.begin()));
        compared += clear[request];
      }
    }
  CHECK(compared > 500);
}

TEST_CASE("serving GPU: quantised weights and caches serve every request", "[serving][gpu]") {
  for (const std::int64_t bits : {8, 4}) {
    Fields fields = few(16, 2048);
    fields.emplace_back("weight_bits", integer(bits));
    fields.emplace_back("kv_bits", integer(bits));
    const ServingRun run = run_serving("cuda.continuous", fields);  // its judge looks at the tokens
    for (const auto& request : run.requests) CHECK(request.has_value());
    CHECK(run.times.busy_ns > 0);
  }
}

TEST_CASE("serving GPU: what the GPU cannot do is said in a sentence", "[serving][gpu]") {
  CHECK(
      run_variant("serving", "cuda.static", serving_fields(materialized(few(16, 1024)))).unsupported ==
      "attention must be flash over blocks of 16 tokens: materialized reads a prompt's keys from one piece of memory, "
      "that of block_size 0");
}
