// Head counts, head dimensions and query lengths: what the row and dimension tiles must cover.
#include <cstdint>
#include <string>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";

TEMPLATE_TEST_CASE_SIG("decode kernels: any number of query heads shares a KV head", kTags,
                       ((std::int64_t block_size), block_size), 0, 16) {
  for (const std::int64_t group : thinned<std::int64_t>({1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64}, 3))
    for (const std::int64_t kv_heads : thinned<std::int64_t>({1, 2, 3, 4}, 2))
      for (const std::int64_t q_len : {1, 3})
        run_decode({.contexts = {70, 2, 33},
                    .q_len = q_len,
                    .q_heads = group * kv_heads,
                    .kv_heads = kv_heads,
                    .head_dim = 128,
                    .block_size = block_size});
}

TEST_CASE("decode kernels: up to eight new tokens see each other causally", kTags) {
  for (const std::int64_t q_len : thinned<std::int64_t>({1, 2, 3, 4, 5, 6, 7, 8}, 3))
    for (const std::int64_t group : {1, 7})
      for (const std::int64_t block_size : {0, 7})
        run_decode({.contexts = {8, 100, 17, 3},
                    .q_len = q_len,
                    .q_heads = 2 * group,
                    .kv_heads = 2,
                    .block_size = block_size});
}

TEMPLATE_TEST_CASE_SIG("decode kernels: every head dimension of the list, in both types", kTags,
                       ((std::int64_t head_dim), head_dim), 64, 80, 96, 112, 128, 192, 256) {
  for (const std::string dtype : {"f16", "bf16"})
    for (const std::int64_t group : {4, 12})  // one row tile, two row tiles or two row blocks
      for (const std::int64_t block_size : {0, 16})
        run_decode({.contexts = {15, 16, 17, 200},
                    .q_heads = 2 * group,
                    .kv_heads = 2,
                    .head_dim = head_dim,
                    .block_size = block_size,
                    .dtype = dtype});
}

TEST_CASE("decode kernels: another head dimension is refused with the allowed list", kTags) {
  for (const std::string variant : {"cuda.contiguous", "cuda.paged"}) {
    const std::int64_t block_size = variant == "cuda.paged" ? 16 : 0;
    const VariantRun run =
        run_variant("attention_decode", variant,
                    {{"context", std::int64_t{8}}, {"head_dim", std::int64_t{72}}, {"block_size", block_size}});
    CHECK(run.unsupported == "head_dim must be one of 64, 80, 96, 112, 128, 192, 256, got 72");
  }
}

TEST_CASE("decode kernels: each variant refuses the other's cache, and both refuse f32", kTags) {
  const auto sentence = [](const std::string& variant, std::int64_t block_size, const std::string& dtype) {
    return run_variant("attention_decode", variant,
                       {{"context", std::int64_t{8}}, {"block_size", block_size}, {"dtype", dtype}})
        .unsupported;
  };
  CHECK(sentence("cuda.contiguous", 16, "f16") == "block_size must be 0, a contiguous cache, got 16");
  CHECK(sentence("cuda.paged", 0, "f16") == "block_size must be at least 1, a paged cache, got 0");
  CHECK(sentence("cuda.contiguous", 0, "f32") == "dtype must be f16 or bf16, got f32");
}

}  // namespace
}  // namespace inferometer::test
