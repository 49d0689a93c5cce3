// The CUDA prefill variants on values that break softmax kernels, and on masks worked out by hand.
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/attention_prefill/prefill_problem.hpp"

namespace inferometer::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Scores are all equal, so that O is the mean of the visible values, and every value of key j is j.
EditTensors uniform_over_keys(const AttentionPrefillProblem& p, float q_value, float k_value) {
  return fill_prefill(p, numbered_values(q_value, k_value), 0);
}

TEST_CASE("prefill: with more queries than keys, the first rows see no key: 0 and -infinity",
          "[attention][prefill][gpu]") {
  const AttentionPrefillProblem p{.q_len = 4, .kv_len = 2, .head_dim = 64, .causal = true};
  for_each_prefill(p, 1, uniform_over_keys(p, 0.0F, 0.0F), [&](const std::string&, const VariantRun& run) {
    const std::vector<float>& o = run.outputs.at("o");
    const std::vector<float>& lse = run.outputs.at("lse");
    for (std::size_t d = 0; d < 64; ++d) {
      REQUIRE(o[d] == 0.0F);
      REQUIRE(o[64 + d] == 0.0F);
      REQUIRE(o[128 + d] == 0.0F);  // key 0 alone
      REQUIRE(o[192 + d] == 0.5F);  // keys 0 and 1
    }
    CHECK(lse[0] == -kInfinity);
    CHECK(lse[1] == -kInfinity);
    CHECK(lse[2] == 0.0F);
    CHECK(lse[3] == Approx(std::log(2.0)));
  });
}

TEST_CASE("prefill: whole tiles of rows without keys are 0 and -infinity", "[attention][prefill][gpu]") {
  for (const std::int64_t head_dim : {64, 96, 128, 192, 256})
    check_prefill({.q_heads = 3, .q_len = 1000, .kv_len = 4, .head_dim = head_dim, .causal = true});
}

TEST_CASE("prefill: with more keys than queries, the mask is aligned at the end", "[attention][prefill][gpu]") {
  const AttentionPrefillProblem p{.q_len = 2, .kv_len = 5, .head_dim = 64, .causal = true};
  for_each_prefill(p, 1, uniform_over_keys(p, 0.0F, 0.0F), [&](const std::string&, const VariantRun& run) {
    CHECK(run.outputs.at("o")[0] == 1.5F);   // mean of 0 .. 3
    CHECK(run.outputs.at("o")[64] == 2.0F);  // mean of 0 .. 4
    CHECK(run.outputs.at("lse")[0] == Approx(std::log(4.0)));
    CHECK(run.outputs.at("lse")[1] == Approx(std::log(5.0)));
  });
}

TEST_CASE("prefill: scores of 1e12 leave no NaN: all inputs 133120 give the value itself",
          "[attention][prefill][gpu]") {
  constexpr float kValue = 133120.0F;  // exact in bf16
  const AttentionPrefillProblem p{.q_len = 128, .kv_len = 128, .head_dim = 64, .dtype = Dtype::bf16};
  const EditTensors all_equal = [](std::vector<TensorSpec>& specs) {
    for (const char* name : {"q", "k", "v"}) tensor_named(specs, name).source = [](std::int64_t) { return kValue; };
  };
  // 64 products of kValue^2, over sqrt(64), plus log(128), which is below the rounding of the sum.
  const double lse = 8.0 * kValue * kValue;
  for_each_prefill(p, 1, all_equal, [&](const std::string&, const VariantRun& run) {
    for (const float value : run.outputs.at("o")) REQUIRE(value == kValue);
    for (const float value : run.outputs.at("lse")) REQUIRE(value == Approx(lse).epsilon(1e-6));
  });
}

TEST_CASE("prefill: scores past the range of f32 leave no NaN", "[attention][prefill][gpu]") {
  const AttentionPrefillProblem p{.q_len = 70, .kv_len = 130, .head_dim = 64, .dtype = Dtype::bf16};
  const EditTensors overflowing = [](std::vector<TensorSpec>& specs) {
    for (const char* name : {"q", "k"}) tensor_named(specs, name).source = [](std::int64_t) { return 0x1p70F; };
    tensor_named(specs, "v").source = [](std::int64_t) { return 3.0F; };
  };
  for_each_prefill(p, 1, overflowing, [&](const std::string&, const VariantRun& run) {
    for (const float value : run.outputs.at("o")) REQUIRE(value == 3.0F);
  });
}

TEST_CASE("prefill: scores near -1e5 are no mask: softmax is uniform and log-sum-exp finite",
          "[attention][prefill][gpu]") {
  // 64 products of 112 * -112, over sqrt(64).
  constexpr double kScore = -8.0 * 112 * 112;
  for (const std::int64_t kv_len : {3, 65, 129}) {
    const AttentionPrefillProblem p{.q_len = 130, .kv_len = kv_len, .head_dim = 64};
    for_each_prefill(p, 1, uniform_over_keys(p, 112.0F, -112.0F), [&](const std::string&, const VariantRun& run) {
      // Each probability is rounded to f16 before the product (2^-11 relative), O once more.
      const double mean = static_cast<double>(kv_len - 1) / 2;
      for (const float value : run.outputs.at("o")) REQUIRE(value == Approx(mean).epsilon(0x1p-10));
      // A score of 1e5 has an f32 spacing of 2^-7; scaling, and adding the logarithm, round once each.
      for (const float value : run.outputs.at("lse"))
        REQUIRE(value == Approx(kScore + std::log(static_cast<double>(kv_len))).margin(0x1p-6).epsilon(0));
    });
  }
}

TEST_CASE("prefill: scores past the range of f16 are right", "[attention][prefill][gpu]") {
  // 128 products of 255^2: 8.3 million before the scale.
  const AttentionPrefillProblem p{.q_len = 65, .kv_len = 129, .head_dim = 128};
  for_each_prefill(p, 1, uniform_over_keys(p, 255.0F, 255.0F), [&](const std::string&, const VariantRun& run) {
    for (const float value : run.outputs.at("o")) REQUIRE(value == Approx(64.0).epsilon(0x1p-10));
  });
}

TEST_CASE("prefill: large logits are right: softmax close to one key", "[attention][prefill][gpu]") {
  const EditTensors large_queries = [](std::vector<TensorSpec>& specs) { specs.at(0).source = Normal{.stddev = 30.0}; };
  for (const std::int64_t head_dim : {64, 128, 256}) {
    for (const bool causal : {false, true}) {
      check_prefill({.q_heads = 2, .q_len = 300, .kv_len = 500, .head_dim = head_dim, .causal = causal}, 3,
                    large_queries);
    }
  }
}

// The maximum that a row subtracts is raised again and again, and in the rows of one warp at different steps.
TEST_CASE("prefill: scores that grow along the keys are right", "[attention][prefill][gpu]") {
  for (const std::int64_t head_dim : {64, 128, 192}) {
    const AttentionPrefillProblem p{.q_len = 200, .kv_len = 700, .head_dim = head_dim, .dtype = Dtype::bf16};
    check_prefill(p, 1, [=](std::vector<TensorSpec>& specs) {
      // One element of each row is not zero: the largest power of two up to i + 1 for query i, j / 4 for key j.
      const auto first_element = [=](const std::function<float(std::int64_t)>& of_row) {
        return [=](std::int64_t index) { return index % head_dim == 0 ? of_row(index / head_dim) : 0.0F; };
      };
      tensor_named(specs, "q").source = first_element(
          [](std::int64_t row) { return static_cast<float>(std::bit_floor(static_cast<std::uint64_t>(row) + 1)); });
      tensor_named(specs, "k").source = first_element([](std::int64_t row) {
        const std::int64_t quarter = row / 4;
        return static_cast<float>(quarter);
      });
    });
  }
}

}  // namespace
}  // namespace inferometer::test
