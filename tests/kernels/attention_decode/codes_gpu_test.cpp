// Every code in every place of a row, in K and in V: sequences of one token, whose O is V and whose log-sum-exp is the
// score.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";
constexpr std::int64_t kBytes = 256;  // one sequence for each

// In 256 sequences every byte of a row takes all 256 values, and every nibble with it; for FP8 without NaN. Another
// order for V, so that it is not taken for K.
TokenContents every_code(const DecodeShape& c) {
  TokenContents contents = random_contents(c);
  contents.code = [fp8 = c.kv_format == "fp8_e4m3"](std::int64_t sequence, std::int64_t, std::int64_t element) {
    const auto byte = static_cast<unsigned>(sequence + element * 37 + (is_key(element) ? 0 : 91)) % 256U;
    return static_cast<float>(fp8 && (byte & 0x7fU) == 0x7fU ? byte ^ 1U : byte);
  };
  contents.scale = [](std::int64_t sequence, std::int64_t, std::int64_t element) {  // element: the group
    const std::int64_t shift = is_key(element) ? 2 + element % 3 : 1 + (element + sequence) % 4;
    return std::ldexp(1.0F, -static_cast<int>(shift));
  };
  return contents;
}

// What contents.code and contents.scale make of element d of the only token of a sequence; `first`: 0 or
// kValueElements.
float element_of(const DecodeShape& c, const TokenContents& contents, std::int64_t sequence, std::int64_t first,
                 std::int64_t d) {
  const std::int64_t group = c.kv_group_size == 0 ? 0 : d / c.kv_group_size;
  const auto byte_at = [&](std::int64_t j) { return contents.code(sequence, 0, first + j); };
  return code_value(c, byte_at, d) * contents.scale(sequence, 0, first + group);
}

TEMPLATE_TEST_CASE_SIG("decode kernels: every code of V in every place of a row comes out exactly", kTags,
                       ((std::int64_t head_dim), head_dim), 64, 96, 128, 256) {
  for (const std::int64_t block_size : {0, 1})
    for (const std::string dtype : {"f16", "bf16"})
      for (const DecodeShape& c : in_every_code_and_group({.contexts = std::vector<std::int64_t>(kBytes, 1),
                                  .q_heads = 1,
                                  .kv_heads = 1,
                                  .head_dim = head_dim,
                                  .block_size = block_size,
                                  .dtype = dtype})) {
        const TokenContents contents = every_code(c);
        const std::vector<float> o = run_decode(c, fill_tokens(c, contents)).outputs.at("o");
        INFO(describe(c));
        std::int64_t wrong = 0;
        for (std::int64_t b = 0; b < kBytes; ++b)
          for (std::int64_t d = 0; d < head_dim; ++d)
            wrong +=
                o[static_cast<std::size_t>(b * head_dim + d)] != element_of(c, contents, b, kValueElements, d) ? 1 : 0;
        CHECK(wrong == 0);
      }
}

// Query head h is 1 in dimension h and 0 elsewhere.
TEST_CASE("decode kernels: every code of K in every place of a row makes its score", kTags) {
  for (const std::int64_t head_dim : {64, 128})
    for (const std::string dtype : {"f16", "bf16"})
      for (const DecodeShape& c : in_every_code_and_group({.contexts = std::vector<std::int64_t>(kBytes, 1),
                                  .q_heads = head_dim,
                                  .kv_heads = 1,
                                  .head_dim = head_dim,
                                  .dtype = dtype})) {
        TokenContents contents = every_code(c);
        contents.value = [head_dim](std::int64_t, std::int64_t, std::int64_t element) {
          const std::int64_t i = element - kQueryElements;
          return i / head_dim == i % head_dim ? 1.0F : 0.0F;
        };
        const std::vector<float> lse = run_decode(c, fill_tokens(c, contents)).outputs.at("lse");
        INFO(describe(c));
        std::int64_t wrong = 0;
        for (std::int64_t b = 0; b < kBytes; ++b)
          for (std::int64_t d = 0; d < head_dim; ++d) {
            const double score = element_of(c, contents, b, 0, d) / std::sqrt(static_cast<double>(head_dim));
            const double error = lse[static_cast<std::size_t>(b * head_dim + d)] - score;
            // Three roundings of f32, of the square root, of one over it and of the product, each at most 2^-24.
            wrong += std::abs(error) > std::abs(score) * 0x1p-22 ? 1 : 0;
          }
        CHECK(wrong == 0);
      }
}

}  // namespace
}  // namespace inferometer::test
