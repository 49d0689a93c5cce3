// Scores at the edges: rows without keys, sizes at which careless arithmetic overflows.
#include <algorithm>
#include <cmath>
#include <string>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";

TEST_CASE("decode kernels: of four queries over two keys the first two see nothing", kTags) {
  for (const std::int64_t block_size : {0, 1, 16}) {
    const VariantRun run =
        run_decode({.contexts = {2}, .q_len = 4, .q_heads = 1, .kv_heads = 1, .block_size = block_size});
    const std::vector<float>& o = run.outputs.at("o");      // [q_len, head_dim]
    const std::vector<float>& lse = run.outputs.at("lse");  // [q_len]
    CHECK(std::all_of(o.begin(), o.begin() + 2L * 64, [](float x) { return x == 0.0F; }));
    CHECK(std::all_of(o.begin() + 2L * 64, o.end(), [](float x) { return std::isfinite(x); }));
    for (int row = 0; row < 4; ++row) CHECK(std::isinf(lse[static_cast<std::size_t>(row)]) == (row < 2));
  }
}

TEST_CASE("decode kernels: the last of two queries sees the last of five keys, the first does not", kTags) {
  const DecodeShape c{.contexts = {5}, .q_len = 2, .q_heads = 1, .kv_heads = 1};
  const auto last_key_only = [](std::int64_t, std::int64_t token, std::int64_t element) {
    if (is_key(element) || is_query(element)) return 0.5F;
    return token == 4 ? 1.0F : 0.0F;
  };
  const std::vector<float> o = run_decode(c, fill_tokens(c, last_key_only, 0.0F)).outputs.at("o");
  CHECK(o.front() == 0.0F);
  CHECK(o.back() == Approx(0.2F).epsilon(1e-3));  // one of five equal weights, rounded to f16
}

TEST_CASE("decode kernels: equal scores of 1e11 stay a uniform softmax", kTags) {
  for (const std::int64_t splits : {1, 3}) {
    const DecodeShape c{.contexts = {128}, .kv_heads = 1, .splits = splits, .dtype = "bf16"};
    const auto huge = [](std::int64_t, std::int64_t, std::int64_t) { return 133120.0F; };
    const std::vector<float> o = run_decode(c, fill_tokens(c, huge, 0.0F)).outputs.at("o");
    CHECK(std::all_of(o.begin(), o.end(), [](float x) { return x == 133120.0F; }));
  }
}

TEST_CASE("decode kernels: equal scores of -1e5 stay a uniform softmax", kTags) {
  const DecodeShape c{.contexts = {100, 1}, .kv_heads = 1, .splits = 2};
  const auto negative = [](std::int64_t sequence, std::int64_t token, std::int64_t element) {
    if (is_key(element)) return -125.0F;
    if (is_query(element)) return 100.0F;
    return random_value(sequence, token, element);
  };
  const std::vector<float> lse = run_decode(c, fill_tokens(c, negative, 0.0F)).outputs.at("lse");
  CHECK(std::all_of(lse.begin(), lse.end(), [](float x) { return std::isfinite(x); }));
}

TEMPLATE_TEST_CASE_SIG("decode kernels: a soft cap bounds the scores, with a window and without", kTags,
                       ((std::int64_t window, std::int64_t block_size), window, block_size), (-1, 0), (-1, 16), (40, 0),
                       (40, 16)) {
  for (const double cap : thinned({5.0, 50.0}, 2))
    for (const std::string dtype : {"f16", "bf16"})
      for (const DecodeShape& c : in_every_format({.contexts = {257, 33, 1, 0},
                                  .q_len = 2,
                                  .block_size = block_size,
                                  .window_left = window,
                                  .soft_cap = cap,
                                  .dtype = dtype}))
        run_decode(c);
}

TEST_CASE("decode kernels: scores far past a soft cap weigh as the cap does", kTags) {
  const DecodeShape c{.contexts = {100}, .soft_cap = 5};
  const auto far_apart = [](std::int64_t sequence, std::int64_t token, std::int64_t element) {
    if (is_key(element)) return token < 50 ? 100.0F : 200.0F;  // scores 8e4 and 1.6e5: tanh is 1 for both
    if (is_query(element)) return 100.0F;
    return random_value(sequence, token, element);
  };
  const std::vector<float> lse = run_decode(c, fill_tokens(c, far_apart, 0.0F)).outputs.at("lse");
  // tanh.approx errs by 2^-11 of the capped score, and every query sees the same scores.
  for (const float x : lse) CHECK(std::abs(x - (5.0F + std::log(100.0F))) < 5.0F * 0x1p-10F);
}

}  // namespace
}  // namespace inferometer::test
