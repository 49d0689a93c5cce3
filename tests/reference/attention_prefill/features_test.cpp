// attention_prefill / cpu.naive and cpu.flash beyond equal sequences of dense tensors: ragged batches, paged caches,
// strides, windows, soft caps, values of another width.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/prefill_problems.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

using Problem = AttentionPrefillProblem;

constexpr const char* kVariants[] = {"cpu.naive", "cpu.flash"};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

VariantRun run(const char* variant, const Problem& p, const EditTensors& edit = {}, std::uint64_t seed = 1) {
  return run_variant("attention_prefill", variant, prefill_fields(p), seed, edit);
}

VariantRun check_passes(const char* variant, const Problem& p, const EditTensors& edit = {}, std::uint64_t seed = 1) {
  CAPTURE(variant, to_string(prefill_fields(p)), seed);
  VariantRun answer = run(variant, p, edit, seed);
  INFO(answer.check.reason);
  CHECK(answer.check.passed);
  return answer;
}

}  // namespace

TEST_CASE("attention_prefill cpu: sequences without keys give 0 and -inf, those without queries give nothing",
          "[attention_prefill][reference]") {
  const Problem p = with_lengths({.q_heads = 2, .causal = true}, {1, 3, 0, 1}, {7, 0, 5, 300});
  for (const char* variant : kVariants) {
    const VariantRun answer = check_passes(variant, p);
    const std::vector<float> empty = answer_of(answer, p, 1);
    constexpr std::size_t kOutputs = 384;  // 3 queries of 2 heads of 64
    for (std::size_t i = 0; i < kOutputs; ++i) REQUIRE(empty[i] == 0.0F);
    for (std::size_t i = kOutputs; i < empty.size(); ++i) REQUIRE(empty[i] == -kInfinity);
    CHECK(answer_of(answer, p, 2).empty());
  }
  for (const char* variant : kVariants) {
    const VariantRun none = check_passes(variant, {.q_heads = 2, .q_len = 3, .kv_len = 0});
    for (const float o : none.outputs.at("o")) REQUIRE(o == 0.0F);
    for (const float lse : none.outputs.at("lse")) REQUIRE(lse == -kInfinity);
  }
}

TEST_CASE("attention_prefill cpu: a sequence of a ragged batch gets the bits that it gets alone",
          "[attention_prefill][reference]") {
  for (const std::int64_t block_size : {0, 16}) {
    const Problem p = with_lengths(
        {.q_heads = 4, .kv_heads = 2, .block_size = block_size, .window_left = 90, .soft_cap = 3, .causal = true},
        {100, 1, 0, 40}, {100, 129, 3, 0});
    for (const char* variant : kVariants) {
      CAPTURE(variant, block_size);
      const VariantRun together = check_passes(variant, p, fill_prefill(p, random_prefill_value, kNan));
      for (std::int64_t b = 0; b < p.batch; ++b) {
        if (p.q_len_of(b) == 0) continue;
        const Problem alone = with_lengths(p, {p.q_len_of(b)}, {p.kv_len_of(b)});
        const PrefillValue of_this = [b](char tensor, std::int64_t, std::int64_t token, std::int64_t element) {
          return random_prefill_value(tensor, b, token, element);
        };
        const VariantRun one = check_passes(variant, alone, fill_prefill(alone, of_this, kNan));
        CHECK(answer_of(one, alone, 0) == answer_of(together, p, b));
      }
    }
  }
}

TEST_CASE("attention_prefill cpu: equal lengths give the same bits ragged and not", "[attention_prefill][reference]") {
  const Problem equal{.batch = 2, .q_heads = 3, .q_len = 70, .kv_len = 100, .v_head_dim = 32, .causal = true};
  const Problem ragged = with_lengths(equal, {70, 70}, {100, 100});
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    const VariantRun a = check_passes(variant, equal, fill_prefill(equal, random_prefill_value, kNan));
    const VariantRun b = check_passes(variant, ragged, fill_prefill(ragged, random_prefill_value, kNan));
    for (std::int64_t sequence = 0; sequence < 2; ++sequence)
      CHECK(answer_of(a, equal, sequence) == answer_of(b, ragged, sequence));
  }
}

TEST_CASE("attention_prefill cpu: a shuffled paged cache gives the bits of contiguous keys and values",
          "[attention_prefill][reference]") {
  for (const std::int64_t page : {1, 3, 16, 64, 128, 256, 512})
    for (const std::int64_t length : {std::int64_t{1}, page - 1, page, page + 1, std::int64_t{1000}}) {
      if (length == 0) continue;
      Problem p = with_lengths({.q_heads = 2, .kv_heads = 2, .causal = true}, {20, 3}, {length, 5});
      for (const char* variant : kVariants) {
        CAPTURE(variant, page, length);
        p.block_size = 0;
        const VariantRun contiguous = check_passes(variant, p, fill_prefill(p, random_prefill_value, kNan));
        p.block_size = page;
        const VariantRun paged = check_passes(variant, p, fill_prefill(p, random_prefill_value, kNan));
        CHECK(paged.raw == contiguous.raw);
      }
    }
}

TEST_CASE("attention_prefill cpu: rows of K and V may lie at strides of their own", "[attention_prefill][reference]") {
  for (const std::int64_t block_size : {0, 16}) {
    Problem p = with_lengths({.q_heads = 4, .kv_heads = 2, .head_dim = 40, .v_head_dim = 24, .block_size = block_size},
                             {30, 5}, {33, 70});
    for (const char* variant : kVariants) {
      CAPTURE(variant, block_size);
      p.k_row_stride = p.v_row_stride = 0;
      const VariantRun dense = check_passes(variant, p, fill_prefill(p, random_prefill_value, kNan));
      p.k_row_stride = 2 * 40 + 8;
      p.v_row_stride = 2 * 24 + 96;
      const VariantRun apart = check_passes(variant, p, fill_prefill(p, random_prefill_value, kNan));
      CHECK(apart.raw == dense.raw);
    }
  }
}

TEST_CASE("attention_prefill cpu: NaN and infinity in unused slots, blocks and padding change nothing",
          "[attention_prefill][reference]") {
  Problem p = with_lengths({.q_heads = 2, .block_size = 4, .k_row_stride = 72}, {5, 13}, {13, 64});
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    const VariantRun clean = check_passes(variant, p, fill_prefill(p, random_prefill_value, 0.25F));
    for (const float garbage : {kNan, kInfinity, -kInfinity, 65504.0F})
      CHECK(run(variant, p, fill_prefill(p, random_prefill_value, garbage)).raw == clean.raw);
  }
}

TEST_CASE("attention_prefill cpu: a window reaches from the query's own key so many back, both included",
          "[attention_prefill][reference]") {
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    Problem p{.q_len = 1, .kv_len = 256, .window_left = 32, .causal = true, .dtype = Dtype::f32};
    const VariantRun one = check_passes(variant, p, fill_prefill(p, numbered_values(0, 0), 0));
    CHECK(one.outputs.at("lse")[0] == Approx(std::log(33.0)));  // keys 223-255
    for (const float o : one.outputs.at("o")) REQUIRE(o == Approx(239.0));

    p = {.q_len = 200, .kv_len = 203, .window_left = 4, .causal = true, .dtype = Dtype::f32};
    const VariantRun many = check_passes(variant, p, fill_prefill(p, numbered_values(0, 0), 0));
    for (std::size_t i = 1; i < 200; ++i) {  // keys i - 1, ..., i + 3
      REQUIRE(many.outputs.at("o")[i * 64] == Approx(static_cast<double>(i) + 1));
      REQUIRE(many.outputs.at("lse")[i] == Approx(std::log(5.0)));
    }
    CHECK(many.outputs.at("lse")[0] == Approx(std::log(4.0)));
  }
}

TEST_CASE("attention_prefill cpu: a window as long as the sequence is none, one of 0 gives the query's own value",
          "[attention_prefill][reference]") {
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    Problem p{.batch = 2, .q_heads = 2, .kv_heads = 2, .q_len = 150, .kv_len = 150, .causal = true};
    const EditTensors random = fill_prefill(p, random_prefill_value, kNan);
    const VariantRun all = check_passes(variant, p, random);
    p.window_left = 149;
    CHECK(check_passes(variant, p, random).raw == all.raw);
    p.window_left = 148;
    CHECK(check_passes(variant, p, random).raw != all.raw);
    p.window_left = 0;
    const VariantRun own = check_passes(variant, p, random);
    for (std::int64_t i = 0; i < 300; ++i)
      for (std::int64_t e = 0; e < 128; ++e)
        REQUIRE(own.outputs.at("o")[static_cast<std::size_t>(i * 128 + e)] ==
                random_prefill_value('v', i / 150, i % 150, e));
  }
}

TEST_CASE("attention_prefill cpu: with a soft cap scores become c tanh(s / c)", "[attention_prefill][reference]") {
  // Two keys: scores 8 and -8 (64 elements of 8 and 1/8, over 8), V 1 and 0.
  const PrefillValue two_keys = [](char tensor, std::int64_t, std::int64_t token, std::int64_t) {
    if (tensor == 'q') return 8.0F;
    if (tensor == 'k') return token == 0 ? 0.125F : -0.125F;
    return token == 0 ? 1.0F : 0.0F;
  };
  for (const char* variant : kVariants) {
    CAPTURE(variant);
    Problem p{.kv_len = 2, .soft_cap = 2, .dtype = Dtype::f32};
    const double capped = 2 * std::tanh(8.0 / 2);
    const VariantRun bent = check_passes(variant, p, fill_prefill(p, two_keys, 0));
    CHECK(bent.outputs.at("lse")[0] == Approx(capped + std::log(1 + std::exp(-2 * capped))));
    CHECK(bent.outputs.at("o")[0] == Approx(1 / (1 + std::exp(-2 * capped))));
    p.soft_cap = 1e6;  // bends a score of 8 by 8^3 / (3e12)
    CHECK(check_passes(variant, p, fill_prefill(p, two_keys, 0)).outputs.at("lse")[0] ==
          Approx(8.0 + std::exp(-16.0)).epsilon(1e-6));
  }
}

TEST_CASE("attention_prefill cpu: V may be narrower or wider than Q and K", "[attention_prefill][reference]") {
  for (const char* variant : kVariants)
    for (const std::int64_t v_head_dim : {8, 64, 128, 200, 256})
      for (const std::int64_t head_dim : {16, 192, 256})
        check_passes(variant, {.q_heads = 2,
                               .q_len = 100,
                               .kv_len = 130,
                               .head_dim = head_dim,
                               .v_head_dim = v_head_dim,
                               .causal = true});
}

TEST_CASE("attention_prefill cpu: random problems of every kind agree with double precision",
          "[attention_prefill][reference]") {
  constexpr std::uint64_t kSeed = 20261129;
  std::mt19937_64 random(kSeed);
  for (std::uint64_t i = 0; i < 60; ++i) {
    Problem p = random_prefill(random, 200);
    if (i % 3 == 0) p.dtype = Dtype::f32;
    for (const char* variant : kVariants) check_passes(variant, p, {}, kSeed + i);
  }
}
