// Sliding windows: a query sees its own key and window_left before it.
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

// Random contents, but keys and values of which `huge` is true weigh everything else down where they are seen. V's
// scales stay: a kernel may hold weights in units of them.
TokenContents with_huge_tokens(const DecodeShape& c, const std::function<bool(std::int64_t token)>& huge) {
  const TokenContents plain = random_contents(c);
  TokenContents contents = plain;
  contents.value = [=](std::int64_t sequence, std::int64_t token, std::int64_t element) {
    const float value = plain.value(sequence, token, element);
    return !is_query(element) && huge(token) ? 1000.0F * value : value;
  };
  contents.code = [=](std::int64_t sequence, std::int64_t token, std::int64_t element) {
    const float code = plain.code(sequence, token, element);
    return !is_key(element) && huge(token) ? 126.0F : code;
  };
  contents.scale = [=](std::int64_t sequence, std::int64_t token, std::int64_t element) {
    const float scale = plain.scale(sequence, token, element);
    return is_key(element) && huge(token) ? 1000.0F * scale : scale;
  };
  return contents;
}

bool same_bits(const VariantRun& a, const VariantRun& b) {
  return a.raw.at("o") == b.raw.at("o") && a.raw.at("lse") == b.raw.at("lse");
}

TEMPLATE_TEST_CASE_SIG("decode kernels: windows of any size agree with double precision", kTags,
                       ((std::int64_t block_size, std::int64_t q_len), block_size, q_len), (0, 1), (0, 4), (5, 1),
                       (5, 4), (16, 1), (16, 4)) {
  for (const std::int64_t window : thinned<std::int64_t>({0, 1, 15, 16, 31, 32, 63, 100, 255, 256, 2000}, 5))
    for (const DecodeShape& c : in_every_format({.contexts = {257, 1, 0, 33, 256, 3},
                                .q_len = q_len,
                                .block_size = block_size,
                                .kv_group_size = 32,
                                .window_left = window}))
      run_decode(c);
}

TEMPLATE_TEST_CASE_SIG("decode kernels: windows under every head dimension and row tile agree with double precision",
                       kTags, ((Dtype dtype), dtype), Dtype::f16, Dtype::bf16) {
  for (const std::int64_t head_dim : {64, 80, 96, 112, 128, 192, 256})
    for (const std::int64_t q_heads : {8, 24})
      run_decode({.contexts = {300, 40},
                  .q_len = 3,
                  .q_heads = q_heads,
                  .head_dim = head_dim,
                  .block_size = 16,
                  .window_left = 77,
                  .dtype = std::string(dtype_name(dtype))});
}

// A window of 64 keys takes 2 steps of 32 keys or 3, by where the sequence ends: the longest sequence may be the one
// that takes fewer.
TEMPLATE_TEST_CASE_SIG("decode kernels: a shorter sequence may need more keys for its window than the longest", kTags,
                       ((std::int64_t q_len, std::int64_t splits, std::int64_t block_size), q_len, splits, block_size),
                       (1, 0, 0), (1, 0, 16), (1, 1, 0), (1, 1, 16), (1, 2, 0), (1, 2, 16), (4, 0, 0), (4, 0, 16),
                       (4, 1, 0), (4, 1, 16), (4, 2, 0), (4, 2, 16)) {
  for (const std::int64_t window : thinned<std::int64_t>({31, 63, 64 - q_len, 512 - q_len}, 2))
    for (const DecodeShape& c : in_every_format({.contexts = {1024, 1023, 1000, 31},
                                .q_len = q_len,
                                .block_size = block_size,
                                .window_left = window,
                                .splits = splits}))
      run_decode(c);
}

TEMPLATE_TEST_CASE_SIG("decode kernels: a window as long as the context is none", kTags,
                       ((std::int64_t q_len, std::int64_t splits), q_len, splits), (1, 0), (1, 1), (1, 3), (4, 0),
                       (4, 1), (4, 3)) {
  for (DecodeShape c : in_every_format({.contexts = {257, 100, 0, 2}, .q_len = q_len, .splits = splits})) {
    const VariantRun causal = run_decode(c);
    if (splits == 0) c.splits = 1;  // the choice may depend on the window
    const VariantRun fixed = splits == 0 ? run_decode(c) : causal;
    for (const std::int64_t window : thinned<std::int64_t>({256, 257, 2147483647}, 2)) {
      c.window_left = window;
      INFO(describe(c));
      CHECK(same_bits(run_decode(c), fixed));
    }
  }
}

TEMPLATE_TEST_CASE_SIG("decode kernels: a window of 32 of 256 keys is exactly keys 223 to 255", kTags,
                       ((std::int64_t splits, std::int64_t block_size), splits, block_size), (1, 0), (1, 16), (2, 0),
                       (2, 16)) {
  for (const DecodeShape& c : in_every_format(
           {.contexts = {256}, .block_size = block_size, .kv_group_size = 32, .window_left = 32, .splits = splits})) {
    const VariantRun plain = run_decode(c, fill_tokens(c, random_contents(c)));
    const auto run_with_huge = [&](const std::function<bool(std::int64_t)>& huge) {
      return run_decode(c, fill_tokens(c, with_huge_tokens(c, huge)));
    };
    CHECK(same_bits(run_with_huge([](std::int64_t token) { return token < 223; }), plain));
    CHECK_FALSE(same_bits(run_with_huge([](std::int64_t token) { return token == 223; }), plain));
  }
}

TEST_CASE("decode kernels: of four queries each has a window of its own", kTags) {
  for (const DecodeShape& c : in_every_format({.contexts = {100}, .q_len = 4, .kv_group_size = 32, .window_left = 9})) {
    const std::size_t row = static_cast<std::size_t>(c.q_heads * c.head_dim);
    const std::vector<float> plain = run_decode(c, fill_tokens(c, random_contents(c))).outputs.at("o");
    for (std::int64_t query = 0; query < 4; ++query) {  // token 96 + query, whose oldest key is 87 + query
      const auto oldest = [query](std::int64_t token) { return token == 87 + query; };
      const std::vector<float> o = run_decode(c, fill_tokens(c, with_huge_tokens(c, oldest))).outputs.at("o");
      INFO(describe(c) << " query " << query);
      for (std::size_t other = 0; other < 4; ++other) {
        const auto begin = static_cast<std::ptrdiff_t>(other * row);
        const bool same =
            std::equal(o.begin() + begin, o.begin() + begin + static_cast<std::ptrdiff_t>(row), plain.begin() + begin);
        CHECK(same == (static_cast<std::int64_t>(other) > query));  // later ones do not see it
      }
    }
  }
}

// The only weight is 1, so that nothing is rounded. Scales are powers of two, which a kernel may move into weights.
TEMPLATE_TEST_CASE_SIG("decode kernels: with a window of nothing O is V", kTags,
                       ((std::int64_t q_len, std::int64_t block_size), q_len, block_size), (1, 0), (1, 16), (4, 0),
                       (4, 16)) {
  constexpr float kScale = 0x1p-5F;
  for (const std::int64_t context : thinned<std::int64_t>({4, 33, 100}, 2))
    for (const std::string dtype : {"f16", "bf16"})
      for (const DecodeShape& c : in_every_format({.contexts = {context},
                                  .q_len = q_len,
                                  .q_heads = 1,
                                  .kv_heads = 1,
                                  .block_size = block_size,
                                  .window_left = 0,
                                  .dtype = dtype})) {
        TokenContents contents = random_contents(c);
        contents.scale = [](std::int64_t, std::int64_t, std::int64_t) { return kScale; };
        const std::vector<float> o = run_decode(c, fill_tokens(c, contents)).outputs.at("o");
        INFO(describe(c));
        std::int64_t wrong = 0;
        for (std::int64_t query = 0; query < q_len; ++query)
          for (std::int64_t d = 0; d < c.head_dim; ++d) {
            const std::int64_t token = context - q_len + query;
            const float element = contents.value(0, token, kValueElements + d);
            const auto byte_at = [&](std::int64_t j) { return contents.code(0, token, kValueElements + j); };
            float expected = kScale * code_value(c, byte_at, d);
            if (c.kv_bits == 16) expected = dtype == "f16" ? element : bf16_value(bf16_bits(element));
            wrong += o[static_cast<std::size_t>(query * c.head_dim + d)] != expected ? 1 : 0;
          }
        CHECK(wrong == 0);
      }
}

}  // namespace
}  // namespace inferometer::test
