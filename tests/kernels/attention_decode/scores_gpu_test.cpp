// Scores at the edges: rows without keys, sizes at which careless arithmetic overflows.
#include <algorithm>
#include <cmath>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";
constexpr std::int64_t kValueElements = std::int64_t{1} << 20;  // V's first element in fill_tokens

TEST_CASE("decode kernels: of four queries over two keys the first two see nothing", kTags) {
  for (const std::int64_t block_size : {0, 1, 16}) {
    const VariantRun run = run_decode({.contexts = {2}, .q_len = 4, .q_heads = 1, .block_size = block_size});
    const std::vector<float>& o = run.outputs.at("o");      // [q_len, head_dim]
    const std::vector<float>& lse = run.outputs.at("lse");  // [q_len]
    CHECK(std::all_of(o.begin(), o.begin() + 2L * 64, [](float x) { return x == 0.0F; }));
    CHECK(std::all_of(o.begin() + 2L * 64, o.end(), [](float x) { return std::isfinite(x); }));
    for (int row = 0; row < 4; ++row) CHECK(std::isinf(lse[static_cast<std::size_t>(row)]) == (row < 2));
  }
}

TEST_CASE("decode kernels: the last of two queries sees the last of five keys, the first does not", kTags) {
  const DecodeCase c{.contexts = {5}, .q_len = 2, .q_heads = 1};
  const auto last_key_only = [](std::int64_t, std::int64_t token, std::int64_t element) {
    return element >= kValueElements && element < 2 * kValueElements ? (token == 4 ? 1.0F : 0.0F) : 0.5F;
  };
  const std::vector<float> o = run_decode(c, fill_tokens(c, last_key_only, 0.0F)).outputs.at("o");
  CHECK(o.front() == 0.0F);
  CHECK(o.back() == Approx(0.2F).epsilon(1e-3));  // one of five equal weights, rounded to f16
}

TEST_CASE("decode kernels: equal scores of 1e11 stay a uniform softmax", kTags) {
  for (const std::int64_t splits : {1, 3}) {
    const DecodeCase c{.contexts = {128}, .splits = splits, .dtype = "bf16"};
    const auto huge = [](std::int64_t, std::int64_t, std::int64_t) { return 133120.0F; };
    const std::vector<float> o = run_decode(c, fill_tokens(c, huge, 0.0F)).outputs.at("o");
    CHECK(std::all_of(o.begin(), o.end(), [](float x) { return x == 133120.0F; }));
  }
}

TEST_CASE("decode kernels: equal scores of -1e5 stay a uniform softmax", kTags) {
  const DecodeCase c{.contexts = {100, 1}, .splits = 2};
  const auto negative = [](std::int64_t sequence, std::int64_t token, std::int64_t element) {
    if (element < kValueElements) return -125.0F;      // K
    if (element >= 2 * kValueElements) return 100.0F;  // Q
    return random_value(sequence, token, element);
  };
  const std::vector<float> lse = run_decode(c, fill_tokens(c, negative, 0.0F)).outputs.at("lse");
  CHECK(std::all_of(lse.begin(), lse.end(), [](float x) { return std::isfinite(x); }));
}

}  // namespace
}  // namespace inferometer::test
