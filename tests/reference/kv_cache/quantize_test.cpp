#include "reference/kv_cache/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

constexpr KvCode kAllCodes[] = {KvCode::int8, KvCode::fp8_e4m3, KvCode::int4};

struct Quantized {
  std::vector<std::uint8_t> codes;
  std::vector<std::uint16_t> scales;
  std::vector<float> values;  // dequantised
};

Quantized quantize(KvCode code, const std::vector<float>& row, std::size_t groups = 1) {
  Quantized result{.codes = std::vector<std::uint8_t>(
                       static_cast<std::size_t>(kv_code_bytes(code, static_cast<std::int64_t>(row.size())))),
                   .scales = std::vector<std::uint16_t>(groups),
                   .values = std::vector<float>(row.size())};
  quantize_kv_row(code, row, result.codes, result.scales);
  dequantize_kv_row(code, result.codes, result.scales, result.values);
  return result;
}

float scale_of(const Quantized& row) { return f16_value(row.scales.at(0)); }

// Codes that are numbers.
std::vector<std::uint8_t> e4m3_numbers() {
  std::vector<std::uint8_t> codes;
  for (int code = 0; code < 256; ++code)
    if ((code & 0x7f) != 0x7f) codes.push_back(static_cast<std::uint8_t>(code));
  return codes;
}

// Distance from a value |v| to the next E4M3 number above it.
float e4m3_step(float value) {
  const float magnitude = std::max(std::fabs(value), 0x1p-6F);
  return std::ldexp(1.0F, std::ilogb(magnitude) - 3);
}

}  // namespace

TEST_CASE("E4M3: the numbers that the specification names", "[kv_cache][quantize]") {
  CHECK(e4m3_value(0x00) == 0);
  CHECK(std::signbit(e4m3_value(0x80)));
  CHECK(e4m3_value(0x01) == 0x1p-9F);    // least subnormal
  CHECK(e4m3_value(0x07) == 0x1.cp-7F);  // greatest subnormal, 0.875 * 2^-6
  CHECK(e4m3_value(0x08) == 0x1p-6F);    // least normal
  CHECK(e4m3_value(0x38) == 1);
  CHECK(e4m3_value(0x7e) == 448);  // greatest normal, 1.75 * 2^8
  CHECK(e4m3_value(0xfe) == -448);
  CHECK(std::isnan(e4m3_value(0x7f)));
  CHECK(std::isnan(e4m3_value(0xff)));
}

TEST_CASE("E4M3: every code comes back from its value, and values rise with their codes", "[kv_cache][quantize]") {
  for (const std::uint8_t code : e4m3_numbers()) CHECK(int{e4m3_code(e4m3_value(code))} == int{code});
  for (int code = 1; code < 0x7f; ++code)
    CHECK(e4m3_value(static_cast<std::uint8_t>(code)) > e4m3_value(static_cast<std::uint8_t>(code - 1)));
}

TEST_CASE("E4M3: half-way values go to the even code, others to the nearer one", "[kv_cache][quantize]") {
  for (int lower = 0; lower < 0x7e; ++lower) {
    const float below = e4m3_value(static_cast<std::uint8_t>(lower));
    const float above = e4m3_value(static_cast<std::uint8_t>(lower + 1));
    const float half = (below + above) / 2;  // exact: five significant bits
    const int even = lower % 2 == 0 ? lower : lower + 1;
    CAPTURE(lower, half);
    CHECK(int{e4m3_code(half)} == even);
    CHECK(int{e4m3_code(-half)} == (even | 0x80));
    CHECK(int{e4m3_code(std::nextafter(half, 0.0F))} == lower);
    CHECK(int{e4m3_code(std::nextafter(half, 1000.0F))} == lower + 1);
  }
}

TEST_CASE("E4M3: what is too great becomes 448, what is too small a zero of its sign", "[kv_cache][quantize]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float great : {448.0F, 463.9F, 464.0F, 480.0F, 1e30F, kInfinity}) {
    CHECK(int{e4m3_code(great)} == 0x7e);
    CHECK(int{e4m3_code(-great)} == 0xfe);
  }
  for (const float small : {0.0F, std::numeric_limits<float>::denorm_min(), 0x1p-30F, 0x1p-10F}) {
    CHECK(int{e4m3_code(small)} == 0x00);
    CHECK(int{e4m3_code(-small)} == 0x80);
  }
}

TEST_CASE("kv quantiser: rows of codes take 16-byte steps", "[kv_cache][quantize]") {
  CHECK(kv_code_bytes(KvCode::int8, 72) == 72);
  CHECK(kv_row_bytes(KvCode::int8, 72) == 80);
  CHECK(kv_row_bytes(KvCode::fp8_e4m3, 128) == 128);
  CHECK(kv_code_bytes(KvCode::int4, 72) == 36);
  CHECK(kv_row_bytes(KvCode::int4, 72) == 48);
  CHECK(kv_row_bytes(KvCode::int4, 8) == 16);
  CHECK(kv_code(8, "integer") == KvCode::int8);
  CHECK(kv_code(8, "fp8_e4m3") == KvCode::fp8_e4m3);
  CHECK(kv_code(4, "integer") == KvCode::int4);
}

TEST_CASE("kv quantiser: a row by hand, as bytes", "[kv_cache][quantize]") {
  // Largest element 127 (or 7): the scale is 1 and each code the rounded element, ties to even.
  const Quantized bytes = quantize(KvCode::int8, {127, -127, 0.5F, 1.5F, -0.5F, -1.5F, 2.5F, -3.75F});
  CHECK(bytes.scales == std::vector<std::uint16_t>{0x3c00});
  CHECK(bytes.codes == std::vector<std::uint8_t>{127, 129, 0, 2, 0, 254, 2, 252});

  const Quantized nibbles = quantize(KvCode::int4, {7, -7, 0.5F, 1.5F, -2.5F, 3.5F, -1, 0});
  CHECK(nibbles.scales == std::vector<std::uint16_t>{0x3c00});
  // 7 and -7 (9), 0 and 2, -2 (14) and 4, -1 (15) and 0: the even element in the low nibble.
  CHECK(nibbles.codes == std::vector<std::uint8_t>{0x97, 0x20, 0x4e, 0x0f});
  CHECK(nibbles.values == std::vector<float>{7, -7, 0, 2, -2, 4, -1, 0});

  const Quantized floats = quantize(KvCode::fp8_e4m3, {448, -1, 17, 19, -0.0F, 0x1p-9F, 0x1p-10F, 30.5F});
  CHECK(floats.scales == std::vector<std::uint16_t>{0x3c00});
  CHECK(floats.codes == std::vector<std::uint8_t>{0x7e, 0xb8, 0x58, 0x5a, 0x80, 0x01, 0x00, 0x5f});
}

TEST_CASE("kv quantiser: the scale is rounded to f16 before codes are made with it", "[kv_cache][quantize]") {
  // 1000 / 127 = 7.874016 lies between the f16 numbers 7.87109375 and 7.875. With the scale before rounding, 999.9 *
  // 127 / 1000 = 126.987; a hundredth decides neither. 66.93 / 7.874016 = 8.50011 rounds to 9, 66.93 / 7.875 = 8.49905
  // to 8.
  const Quantized row = quantize(KvCode::int8, {1000, 66.93F});
  CHECK(scale_of(row) == 7.875F);
  CHECK(row.codes == std::vector<std::uint8_t>{127, 8});
}

TEST_CASE("kv quantiser: a group of zeros has scale 0, codes 0 and worth 0", "[kv_cache][quantize]") {
  for (const KvCode code : kAllCodes) {
    const Quantized row = quantize(code, std::vector<float>(32, -0.0F));
    CHECK(row.scales == std::vector<std::uint16_t>{0});
    CHECK(row.codes == std::vector<std::uint8_t>(row.codes.size(), 0));
    CHECK(row.values == std::vector<float>(32, 0.0F));
  }
}

TEST_CASE("kv quantiser: what a scale cannot express becomes 0, never NaN", "[kv_cache][quantize]") {
  for (const KvCode code : kAllCodes) {
    // A scale of 2^-25 is a tie and goes to 0; the next float above gives the least f16, 2^-24.
    const float tie = 0x1p-25F * largest_code(code);
    const Quantized zero = quantize(code, {tie, -tie, tie / 2, 0});
    CHECK(zero.scales == std::vector<std::uint16_t>{0});
    CHECK(zero.codes == std::vector<std::uint8_t>(zero.codes.size(), 0));
    const float above = 0x1.01p-25F * largest_code(code);
    const Quantized least = quantize(code, {above, -above, 0, 0});
    CHECK(least.scales == std::vector<std::uint16_t>{1});
    // Half a step: FP8 numbers above 128 lie 16 apart.
    CHECK(std::fabs(least.values[0] - above) <= 0x1p-24F * (code == KvCode::fp8_e4m3 ? 8.0F : 0.5F));
    // 1.49 * 2^-24 rounds down to 2^-24: the greatest element is past the largest code, and is held at it.
    const float clamped = 0x1.7dp-24F * largest_code(code);
    const Quantized held = quantize(code, {clamped, -clamped, 0, 0});
    CHECK(held.scales == std::vector<std::uint16_t>{1});
    CHECK(held.values == std::vector<float>{0x1p-24F * largest_code(code), -0x1p-24F * largest_code(code), 0, 0});
    const Quantized tiny = quantize(code, std::vector<float>(8, std::numeric_limits<float>::denorm_min()));
    CHECK(tiny.values == std::vector<float>(8, 0.0F));
  }
}

TEST_CASE("kv quantiser: bf16 values up to 3e38 stop at a scale of 65504", "[kv_cache][quantize]") {
  for (const KvCode code : kAllCodes) {
    const float largest = 65504 * largest_code(code);
    for (const float huge : {3e38F, std::numeric_limits<float>::max(), 65520 * largest_code(code)}) {
      const Quantized row = quantize(code, {huge, -huge, largest, 0});
      CHECK(row.scales == std::vector<std::uint16_t>{0x7bff});
      CHECK(row.values == std::vector<float>{largest, -largest, largest, 0});
    }
  }
}

TEST_CASE("kv quantiser: a group of equal values is worth them to half a scale's last place", "[kv_cache][quantize]") {
  for (const KvCode code : kAllCodes)
    for (const float value : {0.5F, -0.5F, 0.4F, 1.0F, -3.0F, 60000.0F}) {
      CAPTURE(value);
      const Quantized row = quantize(code, std::vector<float>(64, value));
      // The code is the largest one; only the scale was rounded, to 11 bits. Its product is exact in f32.
      for (const float back : row.values) CHECK(std::fabs(back - value) <= 0x1.01p-11F * std::fabs(value));
    }
}

TEST_CASE("kv quantiser: random rows err by half a step at most, in every format and group size",
          "[kv_cache][quantize]") {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const KvCode code : kAllCodes)
    for (const std::size_t group : {32, 64, 128}) {
      std::vector<float> row(128);
      for (float& x : row) x = f16_value(f16_bits(normal(random) * (random() % 16 == 0 ? 20.0F : 1.0F)));
      const Quantized result = quantize(code, row, row.size() / group);
      for (std::size_t d = 0; d < row.size(); ++d) {
        CAPTURE(static_cast<int>(code), group, d, row[d]);
        const float scale = f16_value(result.scales[d / group]);
        const float step = code == KvCode::fp8_e4m3 ? e4m3_step(row[d] / scale) : 1;
        // Half a step. The scale's rounding pushes the greatest element past the largest code by 2^-11 of it, which is
        // less; the two roundings to f32 add 2^-23 of at most 448 steps.
        CHECK(std::fabs(result.values[d] - row[d]) <= scale * step / 2 * (1 + 0x1p-12F));
        CHECK(std::fabs(row[d]) <= scale * largest_code(code) * (1 + 0x1.1p-11F));
      }
    }
}

TEST_CASE("kv quantiser: groups do not see each other", "[kv_cache][quantize]") {
  for (const KvCode code : kAllCodes) {
    std::vector<float> row(64);
    for (std::size_t d = 0; d < row.size(); ++d) row[d] = static_cast<float>(d % 13) - 6;
    const Quantized before = quantize(code, row, 2);
    row[40] = 1000;
    const Quantized after = quantize(code, row, 2);
    CHECK(after.scales[0] == before.scales[0]);
    CHECK(after.scales[1] != before.scales[1]);
    CHECK(std::equal(before.values.begin(), before.values.begin() + 32, after.values.begin()));
    CHECK(after.values[40] == Approx(1000).epsilon(0x1p-11));
  }
}

TEST_CASE("kv quantiser: bytes past the codes are left alone, and sizes that do not fit are refused",
          "[kv_cache][quantize]") {
  std::vector<float> row(24, 1.0F);
  std::vector<std::uint8_t> codes(16, 0xaa);
  std::vector<std::uint16_t> scales(1);
  quantize_kv_row(KvCode::int4, row, codes, scales);
  CHECK(codes[11] == 0x77);
  CHECK(std::all_of(codes.begin() + 12, codes.end(), [](std::uint8_t byte) { return byte == 0xaa; }));

  const auto refuses = [&](KvCode code) { quantize_kv_row(code, row, codes, scales); };
  CHECK_THROWS_WITH(refuses(KvCode::int8),
                    Catch::Matchers::Equals("kv_cache: a row takes codes of whole bytes, 24 of them or more, and a "
                                            "scale for each of its equal groups, got 24 elements, 16 bytes and 1 "
                                            "scales"));
  scales.resize(5);
  CHECK_THROWS_AS(refuses(KvCode::int4), std::invalid_argument);
  scales.clear();
  CHECK_THROWS_AS(refuses(KvCode::int4), std::invalid_argument);
  scales.resize(1);
  row.resize(23);
  CHECK_THROWS_AS(refuses(KvCode::int4), std::invalid_argument);
}
