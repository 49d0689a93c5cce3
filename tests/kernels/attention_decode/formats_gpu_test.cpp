// Every storage format with every group of scales, head dimension, row tile and block size.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";

const std::vector<std::int64_t> kRagged = {0, 1, 15, 16, 17, 31, 32, 33, 257, 1000};

TEMPLATE_TEST_CASE_SIG("decode kernels: codes in blocks of any size and in ragged contexts agree with double precision",
                       kTags, ((std::int64_t block_size), block_size), 0, 1, 5, 16, 64, 512) {
  for (const std::string dtype : {"f16", "bf16"}) {
    const DecodeShape half{.contexts = kRagged, .head_dim = 128, .block_size = block_size, .dtype = dtype};
    run_decode(half);
    for (const DecodeShape& c : in_every_code_and_group(half)) run_decode(c);
  }
}

// 8 or 24 query heads are 4 or 12 rows of a KV head: one row tile, or two.
TEMPLATE_TEST_CASE_SIG("decode kernels: codes of every head dimension, group and row tile agree with double precision",
                       kTags,
                       ((std::int64_t head_dim, std::int64_t q_heads, std::int64_t block_size), head_dim, q_heads,
                        block_size),
                       (64, 8, 0), (64, 8, 16), (64, 24, 0), (64, 24, 16), (96, 8, 0), (96, 8, 16), (96, 24, 0),
                       (96, 24, 16), (128, 8, 0), (128, 8, 16), (128, 24, 0), (128, 24, 16), (192, 8, 0), (192, 8, 16),
                       (192, 24, 0), (192, 24, 16), (256, 8, 0), (256, 8, 16), (256, 24, 0), (256, 24, 16)) {
  for (const std::string dtype : {"f16", "bf16"})
    for (const DecodeShape& c : in_every_code_and_group({.contexts = {17, 100, 1},
                                .q_heads = q_heads,
                                .head_dim = head_dim,
                                .block_size = block_size,
                                .dtype = dtype}))
      run_decode(c);
}

TEMPLATE_TEST_CASE_SIG("decode kernels: codes under any number of query rows agree with double precision", kTags,
                       ((std::int64_t group, std::int64_t block_size), group, block_size), (1, 0), (1, 5), (4, 0),
                       (4, 5), (7, 0), (7, 5), (12, 0), (12, 5)) {
  for (const std::int64_t q_len : thinned<std::int64_t>({1, 3, 8}, 2))
    for (const std::string dtype : {"f16", "bf16"})
      for (const DecodeShape& c : in_every_code({.contexts = {70, 2, 33, 0},
                                  .q_len = q_len,
                                  .q_heads = 3 * group,
                                  .kv_heads = 3,
                                  .block_size = block_size,
                                  .kv_group_size = 32,
                                  .dtype = dtype}))
        run_decode(c);
}

TEST_CASE("decode kernels: codes of a head dimension without whole 16 bytes are refused", kTags) {
  for (const DecodeShape& c : in_every_code({.contexts = {8}, .head_dim = 80})) {
    const VariantRun run = run_variant("attention_decode", "cuda.contiguous", c.fields());
    CHECK(run.unsupported == "head_dim must be one of 64, 96, 128, 192, 256 with quantised KV, got 80");
  }
}

}  // namespace
}  // namespace inferometer::test
