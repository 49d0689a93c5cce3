#include "reference/kv_cache/quantize.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#include "harness/operator/dtype.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kRowAlignment = 16;        // bytes
constexpr std::uint16_t kLargestScale = 0x7bffU;  // 65504 in f16
constexpr int kE4m3LeastExponent = -6;            // of a normal number; below it the step stays 2^-9
constexpr int kE4m3MantissaBits = 3;
constexpr float kE4m3Largest = 448;

std::int64_t bits_of(KvCode code) { return code == KvCode::int4 ? 4 : 8; }

void check_sizes(KvCode code, std::size_t row, std::size_t codes, std::size_t scales) {
  const auto least = static_cast<std::size_t>(kv_code_bytes(code, static_cast<std::int64_t>(row)));
  if ((code == KvCode::int4 && row % 2 != 0) || codes < least || scales == 0 || row % scales != 0)
    throw std::invalid_argument("kv_cache: a row takes codes of whole bytes, " + std::to_string(least) +
                                " of them or more, and a scale for each of its equal groups, got " +
                                std::to_string(row) + " elements, " + std::to_string(codes) + " bytes and " +
                                std::to_string(scales) + " scales");
}

// The scale of a group, f16.
std::uint16_t scale_of(KvCode code, std::span<const float> group) {
  float greatest = 0;
  for (const float x : group) greatest = std::max(greatest, std::fabs(x));
  return std::min(f16_bits(greatest / largest_code(code)), kLargestScale);  // f16_bits may round to infinity
}

std::uint8_t code_of(KvCode code, float scaled) {
  if (code == KvCode::fp8_e4m3) return e4m3_code(scaled);
  const float largest = largest_code(code);
  const auto integer = static_cast<std::int32_t>(std::rint(std::clamp(scaled, -largest, largest)));
  return static_cast<std::uint8_t>(integer & (code == KvCode::int4 ? 0xf : 0xff));
}

// Stores the code of element d; a nibble beside it stays.
void put_code(KvCode code, std::span<std::uint8_t> codes, std::size_t d, std::uint8_t value) {
  if (code != KvCode::int4) {
    codes[d] = value;
  } else if (d % 2 == 0) {
    codes[d / 2] = static_cast<std::uint8_t>((codes[d / 2] & 0xf0U) | value);
  } else {
    codes[d / 2] = static_cast<std::uint8_t>((codes[d / 2] & 0x0fU) | value << 4);
  }
}

float code_value(KvCode code, std::span<const std::uint8_t> codes, std::size_t d) {
  if (code == KvCode::fp8_e4m3) return e4m3_value(codes[d]);
  if (code == KvCode::int8) return static_cast<std::int8_t>(codes[d]);
  const int nibble = codes[d / 2] >> (d % 2 == 0 ? 0 : 4) & 0xf;
  return static_cast<float>(nibble < 8 ? nibble : nibble - 16);
}

}  // namespace

KvCode kv_code(std::int64_t kv_bits, std::string_view kv_format) {
  if (kv_bits == 4) return KvCode::int4;
  return kv_format == "fp8_e4m3" ? KvCode::fp8_e4m3 : KvCode::int8;
}

float largest_code(KvCode code) {
  switch (code) {
    case KvCode::int8: return 127;
    case KvCode::fp8_e4m3: return kE4m3Largest;
    case KvCode::int4: return 7;
  }
  return 0;
}

std::int64_t kv_code_bytes(KvCode code, std::int64_t head_dim) { return head_dim * bits_of(code) / 8; }

std::int64_t kv_row_bytes(KvCode code, std::int64_t head_dim) {
  return (kv_code_bytes(code, head_dim) + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

float e4m3_value(std::uint8_t code) {
  if ((code & 0x7fU) == 0x7fU) return std::numeric_limits<float>::quiet_NaN();
  const int exponent_field = code >> kE4m3MantissaBits & 0xf;
  const int mantissa = code & 0x7;
  // Subnormal: mantissa * 2^-9. Normal: (8 + mantissa) * 2^(exponent_field - 7 - 3).
  const int significand = exponent_field == 0 ? mantissa : mantissa + 8;
  const float magnitude = std::ldexp(static_cast<float>(significand), std::max(exponent_field, 1) - 10);
  return (code & 0x80U) != 0 ? -magnitude : magnitude;
}

std::uint8_t e4m3_code(float value) {
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 0x80 : 0);
  const float magnitude = std::min(std::fabs(value), kE4m3Largest);
  // Numbers of exponent e lie 2^(e - 3) apart: count the steps, and each exponent above the least adds 8 codes. A count
  // of 16 is the first code of the next exponent, as it should be.
  const int f32_exponent = static_cast<int>(std::bit_cast<std::uint32_t>(magnitude) >> 23) - 127;
  const int exponent = std::max(f32_exponent, kE4m3LeastExponent);
  const float steps = std::rint(std::ldexp(magnitude, kE4m3MantissaBits - exponent));
  return static_cast<std::uint8_t>(sign | (static_cast<int>(steps) + (exponent - kE4m3LeastExponent) * 8));
}

void quantize_kv_row(KvCode code, std::span<const float> row, std::span<std::uint8_t> codes,
                     std::span<std::uint16_t> scales) {
  check_sizes(code, row.size(), codes.size(), scales.size());
  const std::size_t group_size = row.size() / scales.size();
  for (std::size_t group = 0; group < scales.size(); ++group) {
    const std::size_t begin = group * group_size;
    const std::uint16_t scale = scale_of(code, row.subspan(begin, group_size));
    const float inverse = 1.0F / f16_value(scale);
    scales[group] = scale;
    for (std::size_t d = begin; d < begin + group_size; ++d)
      put_code(code, codes, d, scale == 0 ? std::uint8_t{0} : code_of(code, row[d] * inverse));
  }
}

void dequantize_kv_row(KvCode code, std::span<const std::uint8_t> codes, std::span<const std::uint16_t> scales,
                       std::span<float> row) {
  check_sizes(code, row.size(), codes.size(), scales.size());
  const std::size_t group_size = row.size() / scales.size();
  for (std::size_t d = 0; d < row.size(); ++d) row[d] = code_value(code, codes, d) * f16_value(scales[d / group_size]);
}

}  // namespace inferometer
