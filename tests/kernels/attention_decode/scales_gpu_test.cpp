// Scales of codes at the ends of f16, and such that differ by orders of magnitude within a sequence.
#include <cmath>
#include <string>
#include <vector>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";
constexpr float kLeastScale = 0x1p-24F;  // the least f16 above 0
constexpr float kLargeScale = 60000;

// Random contents with these scales in place of V's.
TokenContents with_value_scales(const DecodeShape& c, const TokenValue& value_scale) {
  TokenContents contents = random_contents(c);
  contents.scale = [k_scale = contents.scale, value_scale](std::int64_t sequence, std::int64_t token,
                                                           std::int64_t element) {
    return is_key(element) ? k_scale(sequence, token, element) : value_scale(sequence, token, element);
  };
  return contents;
}

TokenValue always(float value) {
  return [value](std::int64_t, std::int64_t, std::int64_t) { return value; };
}

// All tokens have one and the same value, which O is then.
void check_equal_values(const DecodeShape& c, float scale, const std::function<float(std::int64_t)>& byte_at) {
  TokenContents contents = with_value_scales(c, always(scale));
  contents.code = [k_code = contents.code, byte_at](std::int64_t sequence, std::int64_t token, std::int64_t element) {
    return is_key(element) ? k_code(sequence, token, element) : byte_at(element - kValueElements);
  };
  const std::vector<float> o = run_decode(c, fill_tokens(c, contents)).outputs.at("o");
  INFO(describe(c) << " scale " << scale);
  for (std::int64_t d = 0; d < c.head_dim; ++d)
    CHECK(o[static_cast<std::size_t>(d)] == Approx(code_value(c, byte_at, d) * scale).epsilon(0x1p-7));
}

// Codes that are -1, 0 and 1.
std::function<float(std::int64_t)> unit_codes(const DecodeShape& c) {
  return [bits = c.kv_bits, fp8 = c.kv_format == "fp8_e4m3"](std::int64_t j) {
    constexpr float kInt8[] = {255, 0, 1};
    constexpr float kE4m3[] = {0xb8, 0, 0x38};
    constexpr float kInt4[] = {0xf1, 0x01, 0x1f};
    return (bits == 4 ? kInt4 : fp8 ? kE4m3 : kInt8)[j % 3];
  };
}

TEST_CASE("decode kernels: values of the least and of large scales keep their magnitude", kTags) {
  for (const std::int64_t context : {1, 100})
    for (const std::string dtype : {"f16", "bf16"})
      for (const DecodeShape& c :
           in_every_code({.contexts = {context}, .q_heads = 1, .kv_heads = 1, .kv_group_size = 32, .dtype = dtype}))
        for (const float scale : {kLeastScale, kLargeScale}) check_equal_values(c, scale, unit_codes(c));
}

TEST_CASE("decode kernels: random values of small and of large scales agree with double precision", kTags) {
  for (const std::int64_t group : {0, 32})
    for (const std::int64_t block_size : {0, 16}) {
      for (const DecodeShape& c :
           in_every_code({.contexts = {100, 1, 33}, .block_size = block_size, .kv_group_size = group, .dtype = "bf16"}))
        for (const float scale : {kLeastScale, kLargeScale})
          run_decode(c, fill_tokens(c, with_value_scales(c, always(scale))));
      // O in f16 must be neither subnormal nor infinite.
      for (const DecodeShape& c :
           in_every_code({.contexts = {100, 1, 33}, .block_size = block_size, .kv_group_size = group}))
        for (const float scale : {0x1p-11F, 64.0F}) run_decode(c, fill_tokens(c, with_value_scales(c, always(scale))));
    }
}

TEST_CASE("decode kernels: a scale of 0 is a value of 0", kTags) {
  for (const std::string dtype : {"f16", "bf16"})
    for (const DecodeShape& c : in_every_code({.contexts = {50, 3}, .kv_group_size = 32, .dtype = dtype})) {
      TokenContents contents = random_contents(c);
      contents.scale = always(0.0F);
      const VariantRun run = run_decode(c, fill_tokens(c, contents));
      INFO(describe(c));
      for (const float x : run.outputs.at("o")) REQUIRE(x == 0.0F);
      for (std::int64_t i = 0; i < c.q_heads; ++i)  // of the first sequence: 50 scores of 0
        CHECK(run.outputs.at("lse")[static_cast<std::size_t>(i)] == Approx(std::log(50.0F)).epsilon(1e-6));
    }
}

// Queries so small that the scores of keys in large scales have a standard deviation of about 1.
TEST_CASE("decode kernels: keys of the least and of large scales agree with double precision", kTags) {
  for (const std::string dtype : {"f16", "bf16"})
    for (const DecodeShape& c : in_every_code({.contexts = {100, 1, 33}, .kv_group_size = 32, .dtype = dtype}))
      for (const float scale : {kLeastScale, kLargeScale}) {
        TokenContents contents = random_contents(c);
        contents.scale = [v_scale = contents.scale, scale](std::int64_t sequence, std::int64_t token,
                                                           std::int64_t element) {
          return is_key(element) ? scale : v_scale(sequence, token, element);
        };
        if (scale > 1)
          contents.value = [](std::int64_t sequence, std::int64_t token, std::int64_t element) {
            return std::trunc(2 * random_value(sequence, token, element)) * kLeastScale;
          };
        run_decode(c, fill_tokens(c, contents));
      }
}

// 1 and 2^-13, some 10^4 apart: small ones first, large ones first, and in turn. Random codes are below 128, or 448 in
// FP8, so that O is a normal number of f16 in all of them.
TEST_CASE("decode kernels: value scales may differ by four orders of magnitude between tokens", kTags) {
  const std::vector<std::function<bool(std::int64_t)>> orders = {[](std::int64_t token) { return token < 30; },
                                                                 [](std::int64_t token) { return token >= 30; },
                                                                 [](std::int64_t token) { return token % 7 == 3; }};
  for (const auto& is_large : orders)
    for (const std::int64_t block_size : {0, 16})
      for (const std::int64_t splits : {1, 2})
        for (const std::string dtype : {"f16", "bf16"})
          for (const DecodeShape& c : in_every_code({.contexts = {64, 61, 200},
                                      .block_size = block_size,
                                      .kv_group_size = 32,
                                      .splits = splits,
                                      .dtype = dtype}))
            run_decode(c, fill_tokens(c, with_value_scales(c, [&](std::int64_t, std::int64_t token, std::int64_t) {
                                        return is_large(token) ? 1.0F : 0x1p-13F;
                                      })));
}

// The large values come first and weigh next to nothing, by scores of about -20: the small ones are the answer. A
// kernel that keeps weights in units of the largest scale has 11 bits less for them.
TEST_CASE("decode kernels: small values count beside large ones of no weight", kTags) {
  for (const std::string dtype : {"f16", "bf16"})
    for (const DecodeShape& c : in_every_code({.contexts = {64}, .kv_heads = 1, .splits = 1, .dtype = dtype})) {
      TokenContents contents = with_value_scales(
          c, [](std::int64_t, std::int64_t token, std::int64_t) { return token < 4 ? 16.0F : 0x1p-9F; });
      contents.value = always(1.0F);  // Q
      contents.code = [code = contents.code, &c](std::int64_t sequence, std::int64_t token, std::int64_t element) {
        if (!is_key(element) || token >= 4) return code(sequence, token, element);
        return c.kv_bits == 4 ? 153.0F : c.kv_format == "fp8_e4m3" ? 0xf0 : 156.0F;  // -7, -128, -100
      };
      contents.scale = [scale = contents.scale, &c](std::int64_t sequence, std::int64_t token, std::int64_t element) {
        if (!is_key(element) || token >= 4) return scale(sequence, token, element);
        return c.kv_bits == 4 ? 0.36F : 0.025F;
      };
      run_decode(c, fill_tokens(c, contents));
    }
}

}  // namespace
}  // namespace inferometer::test
