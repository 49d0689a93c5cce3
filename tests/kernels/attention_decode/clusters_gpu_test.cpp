// Few sequences: parts of a sequence that may meet in a thread block cluster, and blocks in the wide form.
#include <string>
#include <vector>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";

TEST_CASE("decode kernels: one sequence over the whole GPU agrees with double precision", kTags) {
  for (const std::int64_t context : {1024, 8192})
    for (const std::int64_t head_dim : {64, 96, 128})
      for (const std::int64_t group : {4, 12})
        for (const std::int64_t block_size : {0, 16})
          run_decode({.contexts = {context},
                      .q_heads = 8 * group,
                      .kv_heads = 8,
                      .head_dim = head_dim,
                      .block_size = block_size});
}

TEST_CASE("decode kernels: one sequence over the whole GPU in every format and head dimension", kTags) {
  for (const std::int64_t context : {1000, 2048})
    for (const std::int64_t head_dim : {64, 80, 128, 192, 256})
      for (const std::int64_t q_len : {1, 3})
        for (const std::string dtype : {"f16", "bf16"}) {
          const DecodeShape half{.contexts = {context},
                                 .q_len = q_len,
                                 .q_heads = 32,
                                 .kv_heads = 8,
                                 .head_dim = head_dim,
                                 .block_size = 16,
                                 .dtype = dtype};
          run_decode(half);
          if (head_dim == 80) continue;
          for (const DecodeShape& c : in_every_code(half)) run_decode(c);
        }
}

TEST_CASE("decode kernels: short and empty sequences beside a long one leave parts of theirs empty", kTags) {
  for (const std::vector<std::int64_t>& contexts :
       {std::vector<std::int64_t>{1024, 1}, {1, 1024}, {0, 1024}, {1024, 0, 33}, {8192, 1, 0, 2000}, {1024, 130}})
    for (const std::int64_t kv_heads : {2, 8})
      for (const std::int64_t q_len : {1, 2})
        for (const std::int64_t block_size : {0, 16})
          for (const DecodeShape& c : in_every_format({.contexts = contexts,
                                      .q_len = q_len,
                                      .q_heads = 4 * kv_heads,
                                      .kv_heads = kv_heads,
                                      .head_dim = 128,
                                      .block_size = block_size}))
            run_decode(c);
}

TEST_CASE("decode kernels: a window and a soft cap on one sequence over the whole GPU", kTags) {
  for (const std::int64_t window : {100, 1000, 5000})
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
