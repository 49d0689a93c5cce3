// attention_prefill / cpu.naive and cpu.flash: hand-made cases, the shapes and contents that broke other people's
// kernels, and random problems, against the double-precision judge and against each other.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/reference/common/relaunch.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;
using test::relaunch;
using test::run_variant;
using test::VariantRun;

namespace {

constexpr const char* kVariants[] = {"cpu.naive", "cpu.flash"};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Shape {
  std::int64_t batch = 1;
  std::int64_t q_heads = 2;
  std::int64_t kv_heads = 1;
  std::int64_t q_len = 1;
  std::int64_t kv_len = 1;
  std::int64_t head_dim = 64;
  bool causal = false;
  std::string dtype = "f32";

  Fields fields() const {
    return {{"batch", batch},   {"q_heads", q_heads},   {"kv_heads", kv_heads}, {"q_len", q_len},
            {"kv_len", kv_len}, {"head_dim", head_dim}, {"causal", causal},     {"dtype", dtype}};
  }
};

VariantRun run(const char* variant, const Shape& shape, std::uint64_t seed = 1, const test::EditTensors& edit = {}) {
  return run_variant("attention_prefill", variant, shape.fields(), seed, edit);
}

void check_passes(const Shape& shape, std::uint64_t seed = 1) {
  for (const char* variant : kVariants) {
    CAPTURE(variant, to_string(shape.fields()), seed);
    const VariantRun answer = run(variant, shape, seed);
    INFO(answer.check.reason);
    CHECK(answer.check.passed);
  }
}

// Every element of Q, K and V the same.
test::EditTensors constants(float q, float k, float v) {
  return [=](std::vector<TensorSpec>& specs) {
    specs[0].source = [q](std::int64_t) { return q; };
    specs[1].source = [k](std::int64_t) { return k; };
    specs[2].source = [v](std::int64_t) { return v; };
  };
}

// V whose row j is j + 1 everywhere.
test::EditTensors numbered_values(float q, float k, std::int64_t row_elements) {
  return [=](std::vector<TensorSpec>& specs) {
    constants(q, k, 0)(specs);
    specs[2].source = [row_elements](std::int64_t i) { return static_cast<float>(i / row_elements + 1); };
  };
}

}  // namespace

TEST_CASE("attention_prefill cpu: a query before the first key gives 0 and -inf, the others see theirs",
          "[attention_prefill][reference]") {
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    // Scores 64 * 0.25 * 0.5 / 8 = 1. Row 2 sees the value 1, row 3 the values 1 and 2 with equal weights.
    const Shape shape{.q_heads = 1, .q_len = 4, .kv_len = 2, .causal = true};
    const VariantRun answer = run(variant, shape, 1, numbered_values(0.25F, 0.5F, 64));
    const std::vector<float>& o = answer.outputs.at("o");
    const std::vector<float>& lse = answer.outputs.at("lse");
    for (std::size_t d = 0; d < 64; ++d) {
      CHECK(o[d] == 0.0F);
      CHECK(o[64 + d] == 0.0F);
      CHECK(o[128 + d] == 1.0F);
      CHECK(o[192 + d] == 1.5F);
    }
    CHECK(lse[0] == -kInfinity);
    CHECK(lse[1] == -kInfinity);
    CHECK(lse[2] == Approx(1.0).margin(4e-7));  // a few units in the last place of 1
    CHECK(lse[3] == Approx(1.0 + std::log(2.0)).margin(4e-7));
    CHECK(answer.check.passed);
  }
}

TEST_CASE("attention_prefill cpu: causal is aligned to the last key", "[attention_prefill][reference]") {
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    // Equal scores: row 0 is the mean of 1, ..., 4, row 1 that of 1, ..., 5.
    const Shape shape{.q_heads = 1, .q_len = 2, .kv_len = 5, .causal = true};
    const VariantRun answer = run(variant, shape, 1, numbered_values(0.25F, 0.5F, 64));
    const std::vector<float>& o = answer.outputs.at("o");
    CHECK(o[0] == 2.5F);
    CHECK(o[64] == Approx(3.0F).margin(1e-6));
    CHECK(answer.outputs.at("lse")[0] == Approx(1.0 + std::log(4.0)).margin(4e-7));
    CHECK(answer.check.passed);
  }
}

TEST_CASE("attention_prefill cpu: a causal row ignores every later key", "[attention_prefill][reference]") {
  // Keys and values from 70 on are changed: queries up to 69 must not notice by a single bit.
  const Shape shape{.q_heads = 1, .q_len = 130, .kv_len = 130, .causal = true};
  const auto from_70 = [](std::vector<TensorSpec>& specs) {
    const Inputs inputs(specs, 1);
    for (std::size_t t = 1; t <= 2; ++t)
      specs[t].source = [values = inputs.read(specs[t].name, 0, 130 * 64)](std::int64_t i) {
        return i < 70 * 64 ? values[static_cast<std::size_t>(i)] : 3.0F - values[static_cast<std::size_t>(i)];
      };
  };
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    const VariantRun before = run(variant, shape);
    const VariantRun after = run(variant, shape, 1, from_70);
    const auto first_rows = [](const VariantRun& answer) {
      const std::vector<float>& o = answer.outputs.at("o");
      return std::vector<float>(o.begin(), o.begin() + 70 * 64);
    };
    CHECK(first_rows(before) == first_rows(after));
    CHECK(before.outputs.at("o") != after.outputs.at("o"));
  }
}

TEST_CASE("attention_prefill cpu: equal huge scores give V, not NaN", "[attention_prefill][reference]") {
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    const Shape shape{.q_len = 128, .kv_len = 128, .dtype = "bf16"};
    const VariantRun answer = run(variant, shape, 1, constants(133120.0F, 133120.0F, 133120.0F));
    for (const float value : answer.outputs.at("o")) REQUIRE(value == 133120.0F);
    CHECK(answer.check.passed);
  }
}

TEST_CASE("attention_prefill cpu: equal very negative scores give a uniform softmax and a finite log-sum-exp",
          "[attention_prefill][reference]") {
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    // Scores 64 * 100 * -125 / 8 = -1e5, below any sentinel that is meant to be smaller than all scores.
    const Shape shape{.q_len = 3, .kv_len = 200};
    const VariantRun answer = run(variant, shape, 1, numbered_values(100.0F, -125.0F, 64));
    for (const float value : answer.outputs.at("o")) REQUIRE(value == Approx(100.5).epsilon(1e-5));
    // Scaling Q in f32 errs by two roundings of 2^-24 of 1e5 each, the change of base by as much again.
    for (const float value : answer.outputs.at("lse"))
      REQUIRE(value == Approx(-1e5 + std::log(200.0)).margin(4 * 1e5 * 0x1p-24));
    CHECK(answer.check.passed);
  }
}

TEST_CASE("attention_prefill cpu: lengths around the edges of all tiles agree with double precision",
          "[attention_prefill][reference]") {
  for (const std::int64_t q_len : {1, 15, 16, 17, 47, 48, 49, 95, 96, 97, 193})
    for (const std::int64_t kv_len : {1, 7, 8, 9, 63, 64, 65, 129})
      for (const bool causal : {false, true}) check_passes({.q_len = q_len, .kv_len = kv_len, .causal = causal});
}

TEST_CASE("attention_prefill cpu: every dtype agrees within its tolerance", "[attention_prefill][reference]") {
  for (const char* dtype : {"f16", "bf16", "f32"})
    for (const bool causal : {false, true})
      check_passes(
          {.batch = 2, .q_heads = 4, .kv_heads = 2, .q_len = 150, .kv_len = 300, .causal = causal, .dtype = dtype});
}

TEST_CASE("attention_prefill cpu: every number of query heads per KV head works", "[attention_prefill][reference]") {
  for (const std::int64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64})
    for (const std::int64_t kv_heads : {1, 2, 3, 4})
      for (const std::int64_t q_len : {1, 3})
        check_passes({.batch = 2, .q_heads = group * kv_heads, .kv_heads = kv_heads, .q_len = q_len, .kv_len = 20});
}

TEST_CASE("attention_prefill cpu: every head_dim that is a multiple of 8 works", "[attention_prefill][reference]") {
  for (std::int64_t head_dim = 8; head_dim <= 256; head_dim += 8)
    check_passes({.q_len = 33, .kv_len = 70, .head_dim = head_dim, .causal = true, .dtype = "f16"});
}

TEST_CASE("attention_prefill cpu: random problems agree with double precision", "[attention_prefill][reference]") {
  constexpr std::uint64_t kSeed = 20261129;
  std::mt19937_64 random(kSeed);
  const auto between = [&random](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const char* const dtypes[] = {"f16", "bf16", "f32"};
  for (int i = 0; i < 40; ++i) {
    Shape shape{.batch = between(1, 3),
                .q_heads = 0,
                .kv_heads = between(1, 3),
                .q_len = between(1, 300),
                .kv_len = between(1, 300),
                .head_dim = 8 * between(1, 20),
                .causal = between(0, 1) == 1,
                .dtype = dtypes[between(0, 2)]};
    shape.q_heads = shape.kv_heads * between(1, 3);
    check_passes(shape, kSeed + static_cast<std::uint64_t>(i));
  }
}

TEST_CASE("attention_prefill cpu: a long context agrees with double precision", "[attention_prefill][reference]") {
  for (const bool causal : {false, true})
    check_passes({.q_heads = 1, .q_len = 100, .kv_len = 20000, .causal = causal, .dtype = "f16"});
}

TEST_CASE("attention_prefill cpu: a launch leaves nothing in the workspace that the next one sees",
          "[attention_prefill][reference]") {
  const Shape shape{.batch = 2, .q_heads = 3, .q_len = 110, .kv_len = 70, .causal = true};
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    CHECK(relaunch("attention_prefill", variant, shape.fields(), {{.seed = 9}, {.seed = 1}}) ==
          relaunch("attention_prefill", variant, shape.fields(), {{.seed = 1}}));
  }
}

TEST_CASE("attention_prefill cpu.flash: any number of threads gives the same bits", "[attention_prefill][reference]") {
  const Shape shape{.batch = 2, .q_heads = 3, .q_len = 110, .kv_len = 70, .causal = true};
  const auto with_threads = [&](int threads) {
    return relaunch("attention_prefill", "cpu.flash", shape.fields(), {{.threads = threads}});
  };
  const auto one = with_threads(1);
  for (const int threads : {2, 3, 64}) CHECK(with_threads(threads) == one);
}

TEST_CASE("attention_prefill cpu.flash: its working memory does not grow with the lengths",
          "[attention_prefill][reference]") {
  const auto workspace = [](std::int64_t length) {
    const auto problem = find_operator("attention_prefill")->parse(Shape{.q_len = length, .kv_len = length}.fields());
    return find_variant("attention_prefill", "cpu.flash")->workspace_bytes(problem.get());
  };
  CHECK(workspace(64) > 0);
  CHECK(workspace(std::int64_t{1} << 24) == workspace(64));
}
