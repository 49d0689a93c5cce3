// attention_decode with a sliding window and with a soft cap: which keys are seen, and how scores bend.
#include <cmath>

#include "tests/reference/attention_decode/naive_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// Keys of 0 and values that are their token's number: O is the mean number of the keys seen.
void number_tokens(std::vector<TensorSpec>& specs) {
  tensor_named(specs, "k").source = [](std::int64_t) { return 0.0F; };
  tensor_named(specs, "v").source = [](std::int64_t i) { return static_cast<float>(i / 64); };
}

}  // namespace

TEST_CASE("attention_decode window: it reaches from the query's own key so many back, both included",
          "[attention_decode][reference]") {
  const VariantRun run =
      check_passes({.contexts = {256}, .q_heads = 1, .kv_heads = 1, .window_left = 32, .dtype = "f32"}, &number_tokens);
  CHECK(run.outputs.at("lse")[0] == Approx(std::log(33.0)));  // keys 223-255
  for (const float o : run.outputs.at("o")) REQUIRE(o == Approx(239.0));
}

TEST_CASE("attention_decode window: each query has a window of its own", "[attention_decode][reference]") {
  const VariantRun run = check_passes(
      {.contexts = {20}, .q_len = 3, .q_heads = 1, .kv_heads = 1, .window_left = 4, .dtype = "f32"}, &number_tokens);
  for (std::size_t query = 0; query < 3; ++query) {  // positions 17, 18, 19; keys 13-17, 14-18, 15-19
    CHECK(run.outputs.at("o")[query * 64] == Approx(15.0 + static_cast<double>(query)));
    CHECK(run.outputs.at("lse")[query] == Approx(std::log(5.0)));
  }
}

TEST_CASE("attention_decode window: as long as the context it is none", "[attention_decode][reference]") {
  for (const std::int64_t block_size : {0, 16}) {
    DecodeShape shape{.contexts = {257, 3, 0}, .q_len = 4, .block_size = block_size};
    const VariantRun all = check_passes(shape);
    shape.window_left = 256;
    CHECK(check_passes(shape).raw == all.raw);
    shape.window_left = 1'000'000;
    CHECK(check_passes(shape).raw == all.raw);
    shape.window_left = 255;
    CHECK(check_passes(shape).raw != all.raw);
  }
}

TEST_CASE("attention_decode window: of 0 the output is the query's own value", "[attention_decode][reference]") {
  const DecodeShape shape{.contexts = {300, 1, 0}, .q_len = 2, .q_heads = 2, .kv_heads = 2, .window_left = 0};
  std::vector<float> v;
  const VariantRun run = check_passes(shape, [&](std::vector<TensorSpec>& specs) {
    v = Inputs(specs, 1).read("v", 0, tensor_named(specs, "v").elements());
  });
  const std::vector<float>& o = run.outputs.at("o");  // [3, 2, 2, 64]; v [3, 300, 2, 64]
  for (std::size_t i = 0; i < 2 * 64; ++i) {
    REQUIRE(o[i] == v[298 * 128 + i]);
    REQUIRE(o[128 + i] == v[299 * 128 + i]);
    REQUIRE(o[256 + i] == 0);  // before the first token of sequence 1
    REQUIRE(o[384 + i] == v[300 * 128 + i]);
    REQUIRE(o[512 + i] == 0);
  }
}

TEST_CASE("attention_decode window: every cache, window and length agrees with double precision",
          "[attention_decode][reference]") {
  for (const std::int64_t block_size : {0, 1, 16, 64})
    for (const std::int64_t window : {0, 1, 15, 16, 17, 63, 100, 999})
      for (const std::int64_t bits : {16, 4})
        check_passes({.contexts = {1000, 2, 64, 17},
                      .q_len = 3,
                      .block_size = block_size,
                      .kv_bits = bits,
                      .window_left = window});
}

TEST_CASE("attention_decode window: keys outside it may hold NaN", "[attention_decode][reference]") {
  for (const std::int64_t q_len : {1, 3}) {
    DecodeShape shape{.contexts = {100}, .q_len = q_len, .q_heads = 1, .kv_heads = 1, .window_left = 9};
    const VariantRun clean = check_passes(shape);
    const VariantRun nan = run_naive(shape, [&](std::vector<TensorSpec>& specs) {
      for (const char* name : {"k", "v"}) tensor_named(specs, name).unused = {{0, (100 - q_len - 9) * 64}};
    });
    CHECK(nan.raw == clean.raw);
    const VariantRun too_far = run_naive(shape, [&](std::vector<TensorSpec>& specs) {
      for (const char* name : {"k", "v"}) tensor_named(specs, name).unused = {{0, (100 - q_len - 9 + 1) * 64}};
    });
    CHECK(too_far.raw != clean.raw);  // its first key is seen
  }
}

TEST_CASE("attention_decode soft cap: scores become c tanh(s / c)", "[attention_decode][reference]") {
  // Two keys: scores 8 and -8 (64 elements of 8 and 1/8, over 8), V 1 and 0.
  const auto fill = [](std::vector<TensorSpec>& specs) {
    tensor_named(specs, "q").source = [](std::int64_t) { return 8.0F; };
    tensor_named(specs, "k").source = [](std::int64_t i) { return i < 64 ? 0.125F : -0.125F; };
    tensor_named(specs, "v").source = [](std::int64_t i) { return i < 64 ? 1.0F : 0.0F; };
  };
  DecodeShape shape{.contexts = {2}, .q_heads = 1, .kv_heads = 1, .soft_cap = 2, .dtype = "f32"};
  const double capped = 2 * std::tanh(8.0 / 2);
  const VariantRun run = check_passes(shape, fill);
  CHECK(run.outputs.at("lse")[0] == Approx(capped + std::log(1 + std::exp(-2 * capped))));
  CHECK(run.outputs.at("o")[0] == Approx(1 / (1 + std::exp(-2 * capped))));
  shape.soft_cap = 0;
  CHECK(check_passes(shape, fill).outputs.at("lse")[0] == Approx(8.0 + std::exp(-16.0)).epsilon(1e-6));
  shape.soft_cap = 1e6;  // bends a score of 8 by 8^3 / (3e12)
  CHECK(check_passes(shape, fill).outputs.at("lse")[0] == Approx(8.0 + std::exp(-16.0)).epsilon(1e-6));
}

TEST_CASE("attention_decode soft cap: every cap, dtype and cache agrees with double precision",
          "[attention_decode][reference]") {
  for (const double cap : {0.5, 5.0, 50.0})
    for (const char* dtype : {"f16", "bf16", "f32"})
      for (const std::int64_t bits : {16, 8})
        check_passes({.contexts = {300, 0, 31},
                      .q_len = 2,
                      .block_size = 16,
                      .kv_bits = bits,
                      .window_left = 100,
                      .soft_cap = cap,
                      .dtype = dtype});
}
