// The append kernels over every shape and format, against cpu.naive to the byte.
#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/operator/dtype.hpp"
#include "tests/kernels/kv_append/append_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {

Fields fields_of(const AppendCase& c) {
  return {{"batch", std::ssize(c.contexts)},
          {"contexts", c.contexts},
          {"new_tokens", c.new_tokens},
          {"kv_heads", c.kv_heads},
          {"head_dim", c.head_dim},
          {"block_size", c.block_size},
          {"kv_bits", c.kv_bits},
          {"kv_format", c.kv_format},
          {"kv_group_size", c.kv_group_size},
          {"dtype", c.dtype}};
}

void check_append(const AppendCase& c, const EditTensors& edit) {
  const Fields fields = fields_of(c);
  const VariantRun run =
      run_variant("kv_append", c.block_size == 0 ? "cuda.contiguous" : "cuda.paged", fields, 1, edit);
  const VariantRun naive = run_variant("kv_append", "cpu.naive", fields, 1, edit);
  INFO(to_string(fields));
  REQUIRE(run.unsupported == "");
  INFO(run.check.reason);
  CHECK(run.check.passed);
  for (const auto& [name, bytes] : naive.raw) {
    CAPTURE(name);
    CHECK(run.raw.at(name) == bytes);
  }
}

namespace {

constexpr auto kTags = "[kv_append][gpu]";

TEMPLATE_TEST_CASE_SIG("append kernels: every format, group size and dtype, into both kinds of cache", kTags,
                       ((Dtype dtype, std::int64_t block_size), dtype, block_size), (Dtype::f16, 0), (Dtype::f16, 16),
                       (Dtype::bf16, 0), (Dtype::bf16, 16)) {
  for (const auto& [kv_bits, kv_format] : kAppendFormats)
    for (const std::int64_t group : {0, 32, 64, 128}) {
      if (kv_bits == 16 && group != 0) continue;
      check_append({.contexts = {100, 3},
                    .new_tokens = 37,
                    .kv_heads = 8,
                    .head_dim = 128,
                    .block_size = block_size,
                    .kv_bits = kv_bits,
                    .kv_format = kv_format,
                    .kv_group_size = group,
                    .dtype = std::string(dtype_name(dtype))});
    }
}

// `format` is one of kAppendFormats.
TEMPLATE_TEST_CASE_SIG("append kernels: every head_dim that is a multiple of 8, with every group size that divides it",
                       kTags, ((std::size_t format), format), 0, 1, 2, 3) {
  const auto& [kv_bits, kv_format] = kAppendFormats[format];
  const auto step = static_cast<std::int64_t>(sanitizer_step(3));
  for (std::int64_t head_dim = 8; head_dim <= 256; head_dim += 8 * step)
    for (const std::int64_t group : {0, 32, 64, 128}) {
      if (group != 0 && (kv_bits == 16 || head_dim % group != 0)) continue;
      check_append({.contexts = {5, 0, 18},
                    .new_tokens = 7,
                    .kv_heads = 3,
                    .head_dim = head_dim,
                    .block_size = head_dim % 16 == 0 ? 16 : 0,
                    .kv_bits = kv_bits,
                    .kv_format = kv_format,
                    .kv_group_size = group});
    }
}

TEMPLATE_TEST_CASE_SIG(
    "append kernels: blocks of every size, ragged sequences, chunks around the edges of blocks and warps", kTags,
    ((std::int64_t kv_bits), kv_bits), 16, 8, 4) {
  for (const std::int64_t block_size : thinned<std::int64_t>({0, 1, 5, 16, 64, 512}, 2))
    for (const std::int64_t new_tokens : thinned<std::int64_t>({1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 64, 65, 513}, 4))
      check_append({.contexts = {0, 1, 4, 5, 15, 16, 63, 511, 512, 700},
                    .new_tokens = new_tokens,
                    .kv_heads = new_tokens % 2 == 0 ? 4 : 1,
                    .block_size = block_size,
                    .kv_bits = kv_bits});
}

TEST_CASE("append kernels: one token of one head, and many sequences of one token", kTags) {
  for (const auto& [kv_bits, kv_format] : kAppendFormats)
    for (const std::int64_t batch : thinned<std::int64_t>({1, 2, 127, 300}, 3))
      for (const std::int64_t kv_heads : thinned<std::int64_t>({1, 5, 8}, 2)) {
        AppendCase c{.contexts = {},
                     .kv_heads = kv_heads,
                     .head_dim = 128,
                     .block_size = 16,
                     .kv_bits = kv_bits,
                     .kv_format = kv_format};
        for (std::int64_t b = 0; b < batch; ++b) c.contexts.push_back(b * 37 % 50);
        check_append(c);
      }
}

TEST_CASE("append kernels: a long chunk", kTags) {
  for (const auto& [kv_bits, kv_format] : kAppendFormats)
    check_append({.contexts = {40},
                  .new_tokens = 8192,
                  .kv_heads = 8,
                  .head_dim = 128,
                  .block_size = 16,
                  .kv_bits = kv_bits,
                  .kv_format = kv_format});
}

TEST_CASE("append kernels: what they cannot do is said in a sentence", kTags) {
  AppendCase c{.dtype = "f32"};
  CHECK(run_variant("kv_append", "cuda.contiguous", fields_of(c)).unsupported == "dtype must be f16 or bf16, got f32");
  c.dtype = "f16";
  CHECK(run_variant("kv_append", "cuda.paged", fields_of(c)).unsupported ==
        "block_size must be at least 1, a paged cache, got 0");
  c.block_size = 16;
  CHECK(run_variant("kv_append", "cuda.contiguous", fields_of(c)).unsupported ==
        "block_size must be 0, a contiguous cache, got 16");
}

}  // namespace
}  // namespace inferometer::test
