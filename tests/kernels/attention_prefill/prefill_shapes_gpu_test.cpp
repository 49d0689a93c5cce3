// cuda.flash_sm80 and cuda.materialized against the operator's judge, over shapes.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/attention_prefill/prefill_problem.hpp"

namespace inferometer::test {
namespace {

TEST_CASE("prefill: every head_dim in both types is right, masked and not", "[attention][prefill][gpu]") {
  for (const std::int64_t head_dim : {8, 16, 40, 64, 72, 80, 96, 104, 112, 128, 136, 192, 200, 248, 256}) {
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
      for (const bool causal : {false, true}) {
        check_prefill({.batch = 2,
                       .q_heads = 4,
                       .kv_heads = 2,
                       .q_len = 150,
                       .kv_len = 170,
                       .head_dim = head_dim,
                       .causal = causal,
                       .dtype = dtype});
      }
    }
  }
}

TEST_CASE("prefill: lengths around tile edges are right", "[attention][prefill][gpu]") {
  for (const std::int64_t q_len : {1, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257}) {
    for (const std::int64_t kv_len : {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 193}) {
      for (const bool causal : {false, true}) {
        for (const std::int64_t head_dim : {64, 128})
          check_prefill({.q_len = q_len, .kv_len = kv_len, .head_dim = head_dim, .causal = causal});
      }
    }
  }
}

TEST_CASE("prefill: rows of scores around every length the softmax treats differently are right",
          "[attention][prefill][gpu]") {
  for (const std::int64_t kv_len : {1023, 1024, 1025, 2048, 2049, 4096, 4097, 8192, 8193, 16384, 16385, 40000}) {
    for (const bool causal : {false, true})
      check_prefill({.q_heads = 2, .q_len = 70, .kv_len = kv_len, .head_dim = 64, .causal = causal});
  }
}

TEST_CASE("prefill: any number of query heads per KV head is right", "[attention][prefill][gpu]") {
  for (const std::int64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64}) {
    for (const std::int64_t kv_heads : {1, 2, 3, 4}) {
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
}

TEST_CASE("prefill: random problems are right", "[attention][prefill][gpu]") {
  const std::uint64_t first_seed = std::random_device{}();
  for (std::uint64_t seed = first_seed; seed < first_seed + 25; ++seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](std::int64_t low, std::int64_t high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    AttentionPrefillProblem p;
    p.batch = between(1, 3);
    p.kv_heads = between(1, 4);
    p.q_heads = p.kv_heads * between(1, 5);
    p.q_len = between(1, 700);
    p.kv_len = between(1, 700);
    p.head_dim = 8 * between(1, 32);
    p.causal = between(0, 1) == 1;
    p.dtype = between(0, 1) == 1 ? Dtype::bf16 : Dtype::f16;
    check_prefill(p, seed);
  }
}

TEST_CASE("prefill: more thread blocks than a grid's y or z dimension holds are right", "[attention][prefill][gpu]") {
  check_prefill({.q_heads = 66000, .kv_heads = 66000, .q_len = 2, .kv_len = 3, .head_dim = 64});
  check_prefill({.q_heads = 70000, .kv_heads = 7, .q_len = 1, .kv_len = 33, .head_dim = 64});
}

TEST_CASE("prefill: the same inputs give the same bits", "[attention][prefill][gpu]") {
  const AttentionPrefillProblem p{
      .batch = 2, .q_heads = 8, .kv_heads = 2, .q_len = 700, .kv_len = 900, .head_dim = 128, .causal = true};
  for (const std::string& variant : kPrefillVariants) {
    INFO(variant);
    const VariantRun first = run_prefill(variant, p);
    for (int repeat = 0; repeat < 5; ++repeat) CHECK(run_prefill(variant, p).raw == first.raw);
  }
}

TEST_CASE("prefill: what a variant cannot do it refuses in a sentence", "[attention][prefill][gpu]") {
  for (const std::string& variant : kPrefillVariants) {
    INFO(variant);
    CHECK(run_prefill(variant, {.dtype = Dtype::f32}).unsupported == "dtype must be f16 or bf16, got f32");
  }
}

}  // namespace
}  // namespace inferometer::test
