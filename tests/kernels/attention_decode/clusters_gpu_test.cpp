// Few sequences: parts of a sequence that may meet in a thread block cluster, and blocks in the wide form.
#include <cstdint>
#include <string>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";

TEMPLATE_TEST_CASE_SIG("decode kernels: one sequence over the whole GPU agrees with double precision", kTags,
                       ((std::int64_t head_dim), head_dim), 64, 96, 128) {
  for (const std::int64_t context : {1024, 8192})
    for (const std::int64_t group : {4, 12})
      for (const std::int64_t block_size : {0, 16})
        run_decode({.contexts = {context},
                    .q_heads = 8 * group,
                    .kv_heads = 8,
                    .head_dim = head_dim,
                    .block_size = block_size});
}

TEMPLATE_TEST_CASE_SIG("decode kernels: one sequence over the whole GPU in every format and head dimension", kTags,
                       ((std::int64_t head_dim, Dtype dtype), head_dim, dtype), (64, Dtype::f16), (64, Dtype::bf16),
                       (80, Dtype::f16), (80, Dtype::bf16), (128, Dtype::f16), (128, Dtype::bf16), (192, Dtype::f16),
                       (192, Dtype::bf16), (256, Dtype::f16), (256, Dtype::bf16)) {
  for (const std::int64_t context : {1000, 2048})
    for (const std::int64_t q_len : {1, 3}) {
      const DecodeShape half{.contexts = {context},
                             .q_len = q_len,
                             .q_heads = 32,
                             .kv_heads = 8,
                             .head_dim = head_dim,
                             .block_size = 16,
                             .dtype = std::string(dtype_name(dtype))};
      run_decode(half);
      if (head_dim == 80) continue;
      for (const DecodeShape& c : in_every_code(half)) run_decode(c);
    }
}

void run_uneven(const std::vector<std::int64_t>& contexts, std::int64_t kv_heads, std::int64_t block_size) {
  for (const std::int64_t q_len : {1, 2})
    for (const DecodeShape& c : in_every_format({.contexts = contexts,
                                .q_len = q_len,
                                .q_heads = 4 * kv_heads,
                                .kv_heads = kv_heads,
                                .head_dim = 128,
                                .block_size = block_size}))
      run_decode(c);
}

TEMPLATE_TEST_CASE_SIG("decode kernels: short and empty sequences beside a long one leave parts of theirs empty", kTags,
                       ((std::int64_t kv_heads, std::int64_t block_size), kv_heads, block_size), (2, 0), (2, 16),
                       (8, 0), (8, 16)) {
  for (const std::vector<std::int64_t>& contexts :
       thinned<std::vector<std::int64_t>>({{1024, 1}, {1, 1024}, {0, 1024}, {1024, 0, 33}, {1024, 130}}, 2))
    run_uneven(contexts, kv_heads, block_size);
}

TEMPLATE_TEST_CASE_SIG("decode kernels: short and empty sequences beside two long ones leave parts of theirs empty",
                       kTags, ((std::int64_t kv_heads, std::int64_t block_size), kv_heads, block_size), (2, 0), (2, 16),
                       (8, 0), (8, 16)) {
  run_uneven({8192, 1, 0, 2000}, kv_heads, block_size);
}

TEST_CASE("decode kernels: a window and a soft cap on one sequence over the whole GPU", kTags) {
  for (const std::int64_t window : thinned<std::int64_t>({100, 1000, 5000}, 2))
    for (const double soft_cap : {0.0, 30.0})
      for (const DecodeShape& c : in_every_format({.contexts = {3000},
                                  .q_len = 2,
                                  .q_heads = 32,
                                  .kv_heads = 8,
                                  .head_dim = 128,
                                  .block_size = 16,
                                  .window_left = window,
                                  .soft_cap = soft_cap}))
        run_decode(c);
}

}  // namespace
}  // namespace inferometer::test
