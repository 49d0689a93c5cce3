// 8-bit activations: a token as int8 codes and a scale.
#include "reference/matmul/token_codes.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "harness/operator/generate.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

struct Token {
  float scale = 0;
  std::vector<std::int8_t> codes;

  explicit Token(const std::vector<float>& x) : codes(x.size()) { scale = quantize_token(x, codes); }
};

}  // namespace

TEST_CASE("token codes: the greatest magnitude becomes 127, ties go to even", "[matmul][token_codes]") {
  const Token token({127.0F, -127.0F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 0.49F});
  CHECK(token.scale == 1.0F);
  CHECK(token.codes == std::vector<std::int8_t>{127, -127, 0, 2, 2, 0, -2, 0});
}

TEST_CASE("token codes: every element of a random token is within half a step", "[matmul][token_codes]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<float> x(300);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = normal_at(stream_key(seed, 0), i, normal_scale(3));
    const Token token(x);
    // The reciprocal and the product are rounded to f32: of at most 127 steps.
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(std::abs(x[i] - static_cast<double>(token.codes[i]) * token.scale) <=
            (0.5 + 3 * 127 * 0x1p-24) * token.scale);
  }
}

TEST_CASE("token codes: zeros and subnormals stay finite, an infinity or a NaN has no codes", "[matmul][token_codes]") {
  for (const float x : {0.0F, 0x1p-149F, 0x1p-133F, -0x1p-101F}) {
    const Token token({x, -x});
    CHECK(std::isfinite(token.scale));
    CHECK(std::abs(static_cast<double>(token.codes[0]) * token.scale - x) <= token.scale / 2);
  }
  CHECK(Token({0.0F, 0.0F}).codes == std::vector<std::int8_t>{0, 0});
  for (const float x : {INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN()}) {
    const Token token({1.0F, x});
    CHECK(std::isnan(token.scale));
    CHECK(token.codes == std::vector<std::int8_t>{0, 0});
  }
}
