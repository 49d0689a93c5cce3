// The CUDA prefill variants on scores that move far from one block of keys to the next. A kernel that follows the
// largest score late, or leaves it alone until the sums tell, must notice each time; problems here reach every shape of
// cuda.flash_sm90 (flash_sm90_choice.hpp).
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/attention_prefill/prefill_problem.hpp"
#include "tests/support/sanitizer.hpp"

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

void check_scores(Problem p, Dtype dtype) {
  p.dtype = dtype;
  for (const Scores scores :
       thinned({Scores::rising, Scores::rising_slowly, Scores::falling, Scores::early_key, Scores::large, Scores::huge},
               3)) {
    CAPTURE(static_cast<int>(scores));
    check_prefill(p, 1, with_scores(p, scores));
  }
}

TEMPLATE_TEST_CASE_SIG("prefill: scores that rise, fall, jump or are huge are right at head_dim 64",
                       "[attention][prefill][gpu]", ((Dtype dtype), dtype), Dtype::f16, Dtype::bf16) {
  check_scores(of_length(64, 600, true), dtype);
  for (const bool causal : {false, true}) check_scores(of_length(64, 2100, causal), dtype);
  check_scores(of_length(64, 600, true, 16), dtype);
}

TEMPLATE_TEST_CASE_SIG("prefill: scores that rise, fall, jump or are huge are right at head_dim 128",
                       "[attention][prefill][gpu]", ((Dtype dtype), dtype), Dtype::f16, Dtype::bf16) {
  check_scores(of_length(128, 600, true), dtype);
  for (const bool causal : {false, true}) check_scores(of_length(128, 1100, causal), dtype);
}

TEMPLATE_TEST_CASE_SIG("prefill: scores that rise, fall, jump or are huge are right at head_dim 128 in pages",
                       "[attention][prefill][gpu]", ((Dtype dtype), dtype), Dtype::f16, Dtype::bf16) {
  for (const std::int64_t block_size : {16, 64}) check_scores(of_length(128, 600, true, block_size), dtype);
}

TEMPLATE_TEST_CASE_SIG("prefill: scores that rise, fall, jump or are huge are right at head_dim 128 over many keys",
                       "[attention][prefill][gpu]",
                       ((Dtype dtype, std::int64_t keys, bool causal), dtype, keys, causal), (Dtype::f16, 2100, false),
                       (Dtype::bf16, 2100, false), (Dtype::f16, 4200, true), (Dtype::bf16, 4200, true)) {
  check_scores(of_length(128, keys, causal), dtype);
}

TEMPLATE_TEST_CASE_SIG("prefill: scores that rise, fall, jump or are huge are right at other widths",
                       "[attention][prefill][gpu]",
                       ((std::int64_t head_dim, std::int64_t v_head_dim), head_dim, v_head_dim), (96, 0), (192, 0),
                       (192, 128), (256, 0)) {
  Problem p = of_length(head_dim, 700, true);
  p.v_head_dim = v_head_dim;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) check_scores(p, dtype);
}

TEMPLATE_TEST_CASE_SIG(
    "prefill: windows over rising scores are right, in which rows see their first keys at different blocks",
    "[attention][prefill][gpu]", ((std::int64_t head_dim, std::int64_t window), head_dim, window), (64, 0), (64, 63),
    (64, 1000), (128, 0), (128, 63), (128, 1000)) {
  Problem p = of_length(head_dim, 4200, true);
  p.window_left = window;
  for (const Scores scores : {Scores::rising, Scores::early_key}) check_prefill(p, 1, with_scores(p, scores));
}

// Lengths that the short problems of the other tests do not reach.
TEMPLATE_TEST_CASE_SIG("prefill: many keys are right, contiguous and paged", "[attention][prefill][gpu]",
                       ((std::int64_t head_dim, std::int64_t block_size, bool causal), head_dim, block_size, causal),
                       (64, 0, false), (64, 0, true), (64, 16, false), (64, 16, true), (64, 40, false), (64, 40, true),
                       (64, 256, false), (64, 256, true), (128, 0, false), (128, 0, true), (128, 16, false),
                       (128, 16, true), (128, 40, false), (128, 40, true), (128, 256, false), (128, 256, true)) {
  for (const std::int64_t keys : {1025, 2049, 4097}) check_prefill(of_length(head_dim, keys, causal, block_size));
}

// Enough tiles that those of 192 queries keep all SMs busy.
TEST_CASE("prefill: many keys are right under many queries", "[attention][prefill][gpu][large]") {
  for (const std::int64_t head_dim : {64, 128})
    for (const bool causal : {false, true})
      for (const std::int64_t keys : {1025, 2049, 4097})
        check_prefill({.q_heads = 132, .q_len = 190, .kv_len = keys, .head_dim = head_dim, .causal = causal});
}

TEMPLATE_TEST_CASE_SIG(
    "prefill: every shape of cuda.flash_sm90 gives the same bits for the same inputs", "[attention][prefill][gpu]",
    ((std::int64_t head_dim, std::int64_t keys, std::int64_t block_size), head_dim, keys, block_size), (64, 600, 0),
    (64, 2100, 0), (128, 600, 0), (128, 1100, 0), (128, 4200, 0), (128, 900, 16), (128, 900, 64)) {
  const int repeats = under_sanitizer() ? 2 : 10;
  const Problem p =
      with_lengths({.q_heads = 24, .kv_heads = 8, .head_dim = head_dim, .block_size = block_size, .causal = true},
                   {500, 1, 190, 600}, {keys, 300, 0, keys});
  const VariantRun first = run_prefill("cuda.flash_sm90", p);
  INFO(to_string(prefill_fields(p)) << ": " << first.unsupported << first.check.reason);
  if (!first.unsupported.empty()) return;  // another GPU
  CHECK(first.check.passed);
  for (int repeat = 1; repeat < repeats; ++repeat) REQUIRE(run_prefill("cuda.flash_sm90", p).raw == first.raw);
}

}  // namespace
}  // namespace inferometer::test
