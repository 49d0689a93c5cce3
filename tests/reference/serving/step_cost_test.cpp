// What a step costs, against figures worked out by hand.
#include "reference/serving/problem.hpp"
#include "tests/reference/serving/serving_runs.hpp"

using namespace inferometer;

TEST_CASE("serving cost: Llama-3-8B reads 15 GB of weights a step, and 128 KiB a cached token", "[serving][cost]") {
  ServingProblem problem;
  // 32 layers of Q and O 4096 x 4096, K and V 4096 x 1024, three of 4096 x 14336: 6,979,321,856 weights.
  CHECK(layer_weight_bytes(problem) == 2 * 6'979'321'856);
  CHECK(head_weight_bytes(problem) == 2 * std::int64_t{128'256} * 4096);
  CHECK(layer_flops(problem) == 2 * 6'979'321'856.0);
  CHECK(pair_flops(problem) == 4.0 * 32 * 4096);
  CHECK(problem.token_bytes() == 131'072);
  problem.weight_bits = 4;  // and a scale of 2 bytes for 128 weights
  CHECK(layer_weight_bytes(problem) == 6'979'321'856 / 2 + 6'979'321'856 / 64);
}

TEST_CASE("serving cost: at the ceilings a step takes its bytes over the bandwidth, and no launch", "[serving][cost]") {
  const ServingProblem problem;
  const StepCost least = step_cost(problem, ceiling_rates(problem));
  CHECK(least.step_ns == 0);
  CHECK(least.prompt_step_ns == 0);
  CHECK(least.kernels_ns == 0);
  CHECK(least.one_token_saved_ns == 0);
  CHECK(least.many_tokens_ns == 0);
  CHECK(least.prompt_kernels_ns == 0);
  CHECK(least.prompt_row_ns == 0);
  CHECK(least.stream_ns == 0);
  CHECK(least.first_keys_ns == 0);
  CHECK(least.weights_ns == Approx(1e9 * 15'009'316'864 / 4.65e12));
}

TEST_CASE("serving cost: what kernels reach is never above a ceiling", "[serving][cost]") {
  ServingProblem problem;
  for (const std::int64_t bits : {16, 8, 4})
    for (const char* attention : {"flash", "materialized"}) {
      problem.weight_bits = problem.kv_bits = bits;
      problem.attention = attention;
      const StepCost least = step_cost(problem, ceiling_rates(problem));
      const StepCost reached = step_cost(problem, achieved_rates(problem));
      CAPTURE(bits, attention);
      CHECK(reached.weights_ns > least.weights_ns);
      CHECK(reached.token_ns > least.token_ns);
      CHECK(reached.key_ns > least.key_ns);
      CHECK(reached.pair_ns > least.pair_ns);
      CHECK(reached.step_ns >= reached.host_ns);
      CHECK(reached.weights_ns + reached.kernels_ns - reached.one_token_saved_ns > least.weights_ns);
    }
}

TEST_CASE("serving cost: products multiply whole tiles of tokens", "[serving][cost]") {
  CHECK(tile_tokens(1) == 1);
  CHECK(tile_tokens(16) == 16);
  CHECK(tile_tokens(17) == 64);
  CHECK(tile_tokens(64) == 64);
  CHECK(tile_tokens(65) == 128);
  CHECK(tile_tokens(256) == 256);
  CHECK(tile_tokens(257) == 384);
  CHECK(tile_tokens(1024) == 1024);
  CHECK(tile_tokens(1025) == 1152);
  const ServingProblem problem;
  CHECK(step_cost(problem, achieved_rates(problem)).whole_tiles);
  CHECK_FALSE(step_cost(problem, ceiling_rates(problem)).whole_tiles);
}

TEST_CASE("serving cost: a graph makes steps of single tokens cheaper, and no prompt", "[serving][cost]") {
  ServingProblem problem;
  const StepCost graphs = step_cost(problem, achieved_rates(problem));
  problem.graphs = false;
  const StepCost launches = step_cost(problem, achieved_rates(problem));
  CHECK(graphs.step_ns == graphs.host_ns);
  CHECK(launches.step_ns > graphs.step_ns);
  CHECK(launches.step_ns + launches.prompt_step_ns == Approx(graphs.step_ns + graphs.prompt_step_ns));
}
