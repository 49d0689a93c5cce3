// The CUDA prefill variants against the operator's judge, over shapes.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "tests/kernels/attention_prefill/prefill_problem.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

// A case takes three.
TEMPLATE_TEST_CASE_SIG("prefill: every head_dim is right, masked and not", "[attention][prefill][gpu]",
                       ((std::size_t first, Dtype dtype), first, dtype), (0, Dtype::f16), (0, Dtype::bf16),
                       (3, Dtype::f16), (3, Dtype::bf16), (6, Dtype::f16), (6, Dtype::bf16), (9, Dtype::f16),
                       (9, Dtype::bf16), (12, Dtype::f16), (12, Dtype::bf16)) {
  const std::vector<std::int64_t> head_dims = {8, 16, 40, 64, 72, 80, 96, 104, 112, 128, 136, 192, 200, 248, 256};
  REQUIRE(head_dims.size() == 15);
  for (std::size_t i = first; i < first + 3; ++i)
    for (const bool causal : {false, true})
      check_prefill({.batch = 2,
                     .q_heads = 4,
                     .kv_heads = 2,
                     .q_len = 150,
                     .kv_len = 170,
                     .head_dim = head_dims[i],
                     .causal = causal,
                     .dtype = dtype});
}

// Tiles of the kernels are 48, 64, 80, 96, 112, 128, 176 and 192 rows. A case takes two lengths of queries.
void check_tile_edges(std::size_t first) {
  const std::vector<std::int64_t> lengths = {1,   15,  17,  31,  32,  33,  47,  48,  49,  63,  64,
                                             65,  79,  80,  81,  95,  97,  111, 113, 127, 128, 129,
                                             175, 176, 177, 191, 192, 193, 255, 257, 383, 385};
  REQUIRE(lengths.size() == 32);
  for (std::size_t i = first; i < first + 2; ++i) {
    const std::size_t step = sanitizer_step(16);
    for (std::size_t j = i % step; j < lengths.size(); j += step) {
      // 64, 128 and 256 in turn, so that all edges meet each of them, masked and not.
      const std::int64_t head_dim = std::int64_t{64} << ((i + j) % 3);
      check_prefill({.q_len = lengths[i], .kv_len = lengths[j], .head_dim = head_dim, .causal = (i + j / 3) % 2 == 0});
    }
  }
}

TEMPLATE_TEST_CASE_SIG("prefill: lengths around tile edges are right under few queries", "[attention][prefill][gpu]",
                       ((std::size_t first), first), 0, 2, 4, 6, 8, 10) {
  check_tile_edges(first);
}

TEMPLATE_TEST_CASE_SIG("prefill: lengths around tile edges are right under many queries", "[attention][prefill][gpu]",
                       ((std::size_t first), first), 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) {
  check_tile_edges(first);
}

TEMPLATE_TEST_CASE_SIG("prefill: rows of scores around every length the softmax treats differently are right",
                       "[attention][prefill][gpu]",
                       ((std::int64_t shortest, std::int64_t longest, bool causal), shortest, longest, causal),
                       (1023, 1024, false), (1023, 1024, true), (1025, 2048, false), (1025, 2048, true),
                       (2049, 4096, false), (2049, 4096, true), (4097, 8192, false), (4097, 8192, true),
                       (8193, 16384, false), (8193, 16384, true), (16385, 40000, false), (16385, 40000, true)) {
  for (const std::int64_t kv_len : {shortest, longest})
    check_prefill({.q_heads = 2, .q_len = 70, .kv_len = kv_len, .head_dim = 64, .causal = causal});
}

TEMPLATE_TEST_CASE_SIG("prefill: any number of query heads per KV head is right", "[attention][prefill][gpu]",
                       ((std::int64_t kv_heads), kv_heads), 1, 2, 3, 4) {
  for (const std::int64_t group : thinned<std::int64_t>({1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64}, 4)) {
    for (const std::int64_t q_len : {1, 3}) {
      check_prefill({.batch = 2,
                     .q_heads = group * kv_heads,
                     .kv_heads = kv_heads,
                     .q_len = q_len,
                     .kv_len = 100,
                     .head_dim = 64,
                     .causal = true});
    }
  }
}

// Equal lengths, dense tensors and no more than a causal mask.
AttentionPrefillProblem plain(const AttentionPrefillProblem& any) {
  return {.batch = any.batch,
          .q_heads = any.q_heads,
          .kv_heads = any.kv_heads,
          .q_len = any.q_len,
          .kv_len = any.kv_len,
          .head_dim = any.head_dim,
          .causal = any.causal,
          .dtype = any.dtype};
}

void check_random(std::uint64_t count, std::int64_t longest, bool of_every_kind) {
  const std::uint64_t first_seed = std::random_device{}();
  for (std::uint64_t seed = first_seed; seed < first_seed + count; seed += sanitizer_step(6)) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const AttentionPrefillProblem any = random_prefill(random, longest);
    check_prefill(of_every_kind ? any : plain(any), seed);
  }
}

TEST_CASE("prefill: random problems of every kind are right", "[attention][prefill][gpu][large]") {
  check_random(50, 700, true);
}

TEST_CASE("prefill: random short problems of every kind are right", "[attention][prefill][gpu]") {
  check_random(25, 200, true);
}

TEST_CASE("prefill: random plain problems are right", "[attention][prefill][gpu][large]") {
  check_random(25, 700, false);
}

TEST_CASE("prefill: random short plain problems are right", "[attention][prefill][gpu]") {
  check_random(25, 200, false);
}

TEST_CASE("prefill: more thread blocks than a grid's y or z dimension holds are right",
          "[attention][prefill][gpu][large]") {
  check_prefill({.q_heads = 66000, .kv_heads = 66000, .q_len = 2, .kv_len = 3, .head_dim = 64});
  check_prefill({.q_heads = 70000, .kv_heads = 7, .q_len = 1, .kv_len = 33, .head_dim = 64});
  check_prefill({.batch = 70000, .q_heads = 2, .q_len = 2, .kv_len = 5, .head_dim = 64, .causal = true});
  const std::vector<std::int64_t> lengths(70000, 1);
  check_prefill(with_lengths({.q_heads = 2, .head_dim = 64}, lengths, lengths));
}

TEST_CASE("prefill: the same inputs give the same bits", "[attention][prefill][gpu][large]") {
  constexpr int kRepeats = 50;
  const AttentionPrefillProblem equal{
      .batch = 2, .q_heads = 8, .kv_heads = 2, .q_len = 700, .kv_len = 900, .head_dim = 128, .causal = true};
  AttentionPrefillProblem ragged = with_lengths(equal, {400, 0, 1, 129, 600}, {700, 5, 0, 129, 601});
  ragged.block_size = 16;
  ragged.window_left = 300;
  for (const AttentionPrefillProblem& p : {equal, ragged})
    for_each_prefill(p, 1, {}, [&](const std::string& variant, const VariantRun& first) {
      CHECK(first.check.passed);
      for (int repeat = 1; repeat < kRepeats; ++repeat) REQUIRE(run_prefill(variant, p).raw == first.raw);
    });
}

// Keys and values, then queries and outputs, past 2^31 elements. Short sequences: only offsets are large.
TEST_CASE("prefill: tensors beyond 2^31 elements are right", "[attention][prefill][gpu][large]") {
  const std::vector<AttentionPrefillProblem> problems = {
      {.batch = (1 << 15) + 3, .q_heads = 16, .kv_heads = 16, .q_len = 1, .kv_len = 32, .head_dim = 128},
      {.q_heads = 64, .q_len = (1 << 18) + 70, .kv_len = 16, .head_dim = 128}};
  for (const AttentionPrefillProblem& p : problems) {
    try {
      check_prefill(p);
    } catch (const OutOfMemory& error) {
      WARN("not tested: " << error.what());
    }
  }
}

TEST_CASE("prefill: what a variant cannot do it refuses in a sentence", "[attention][prefill][gpu]") {
  for (const std::string& variant : prefill_variants()) {
    INFO(variant);
    CHECK(run_prefill(variant, {.dtype = Dtype::f32}).unsupported.find("f16") != std::string::npos);
  }
}

}  // namespace
}  // namespace inferometer::test
