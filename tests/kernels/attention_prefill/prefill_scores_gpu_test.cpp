// The CUDA prefill variants on scores that move far from one block of keys to the next. A kernel that follows the
// largest score late, or leaves it alone until the sums tell, must notice each time; problems here reach every shape of
// cuda.flash_sm90 (flash_sm90_choice.hpp).
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/kernels/attention_prefill/prefill_problem.hpp"

namespace inferometer::test {
namespace {

using Problem = AttentionPrefillProblem;

enum class Scores { rising, rising_slowly, falling, early_key, large, huge };

// Multiples of a quarter up to 2: sums of products of a head are exact in f32, so that scores may be as large as they
// like without an error of their own.
float quarters(char tensor, std::int64_t sequence, std::int64_t token, std::int64_t element) {
  return std::floor(4 * random_prefill_value(tensor, sequence, token, element)) / 4;
}

// What is added to each element of a key: 1 more is about 2^16 times the probability at head_dim 128.
float excess(Scores scores, std::int64_t key, std::int64_t keys) {
  switch (scores) {
    case Scores::rising: return static_cast<float>(key / 64);
    case Scores::rising_slowly: return static_cast<float>(key / 128) / 4;
    case Scores::falling: return static_cast<float>((keys - key) / 64);
    case Scores::early_key: return key == keys / 5 ? 16.0F : 0.0F;
    default: return 0.0F;
  }
}

EditTensors with_scores(const Problem& p, Scores scores) {
  const float factor = scores == Scores::large ? 16.0F : scores == Scores::huge ? 8192.0F : 1.0F;
  return fill_prefill(
      p,
      [=](char tensor, std::int64_t sequence, std::int64_t token, std::int64_t element) {
        const float value = quarters(tensor, sequence, token, element);
        if (tensor == 'v') return value;
        if (factor != 1.0F) return value * factor;
        if (tensor == 'q') return std::abs(value);
        return value + excess(scores, token, p.kv_len);
      },
      0);
}

// Two sequences of 3 heads, the longer one of `keys`.
Problem of_length(std::int64_t head_dim, std::int64_t keys, bool causal, std::int64_t block_size = 0) {
  return with_lengths({.q_heads = 3, .head_dim = head_dim, .block_size = block_size, .causal = causal}, {150, 40},
                      {keys, 300});
}

void check_scores(Problem p) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    p.dtype = dtype;
    for (const Scores scores :
         {Scores::rising, Scores::rising_slowly, Scores::falling, Scores::early_key, Scores::large, Scores::huge}) {
      CAPTURE(static_cast<int>(scores));
      check_prefill(p, 1, with_scores(p, scores));
    }
  }
}

TEST_CASE("prefill: scores that rise, fall, jump or are huge are right at head_dim 64", "[attention][prefill][gpu]") {
  check_scores(of_length(64, 600, true));
  for (const bool causal : {false, true}) check_scores(of_length(64, 2100, causal));
  check_scores(of_length(64, 600, true, 16));
}

TEST_CASE("prefill: scores that rise, fall, jump or are huge are right at head_dim 128", "[attention][prefill][gpu]") {
  check_scores(of_length(128, 600, true));
  for (const bool causal : {false, true}) check_scores(of_length(128, 1100, causal));
  check_scores(of_length(128, 2100, false));
  check_scores(of_length(128, 4200, true));
  for (const std::int64_t block_size : {16, 64}) check_scores(of_length(128, 600, true, block_size));
}

TEST_CASE("prefill: scores that rise, fall, jump or are huge are right at other widths", "[attention][prefill][gpu]") {
  for (const auto& [head_dim, v_head_dim] : {std::pair{96, 0}, {192, 0}, {192, 128}, {256, 0}}) {
    Problem p = of_length(head_dim, 700, true);
    p.v_head_dim = v_head_dim;
    check_scores(p);
  }
}

TEST_CASE("prefill: windows over rising scores are right, in which rows see their first keys at different blocks",
          "[attention][prefill][gpu]") {
  for (const std::int64_t head_dim : {64, 128})
    for (const std::int64_t window : {0, 63, 1000}) {
      Problem p = of_length(head_dim, 4200, true);
      p.window_left = window;
      for (const Scores scores : {Scores::rising, Scores::early_key}) check_prefill(p, 1, with_scores(p, scores));
    }
}

// Lengths that the short problems of the other tests do not reach.
TEST_CASE("prefill: many keys are right, contiguous and paged", "[attention][prefill][gpu]") {
  for (const std::int64_t head_dim : {64, 128})
    for (const bool causal : {false, true})
      for (const std::int64_t block_size : {0, 16, 40, 256})
        for (const std::int64_t keys : {1025, 2049, 4097}) {
          check_prefill(of_length(head_dim, keys, causal, block_size));
          // Enough tiles that those of 192 queries keep all SMs busy.
          if (block_size == 0)
            check_prefill({.q_heads = 132, .q_len = 190, .kv_len = keys, .head_dim = head_dim, .causal = causal});
        }
}

TEST_CASE("prefill: every shape of cuda.flash_sm90 gives the same bits for the same inputs",
          "[attention][prefill][gpu]") {
  constexpr int kRepeats = 10;
  for (const auto& [head_dim, keys, block_size] : {std::tuple{64, 600, 0},
                                                   {64, 2100, 0},
                                                   {128, 600, 0},
                                                   {128, 1100, 0},
                                                   {128, 4200, 0},
                                                   {128, 900, 16},
                                                   {128, 900, 64}}) {
    Problem p =
        with_lengths({.q_heads = 24, .kv_heads = 8, .head_dim = head_dim, .block_size = block_size, .causal = true},
                     {500, 1, 190, 600}, {keys, 300, 0, keys});
    const VariantRun first = run_prefill("cuda.flash_sm90", p);
    INFO(to_string(prefill_fields(p)) << ": " << first.unsupported << first.check.reason);
    if (!first.unsupported.empty()) return;  // another GPU
    CHECK(first.check.passed);
    for (int repeat = 1; repeat < kRepeats; ++repeat) REQUIRE(run_prefill("cuda.flash_sm90", p).raw == first.raw);
  }
}

}  // namespace
}  // namespace inferometer::test
