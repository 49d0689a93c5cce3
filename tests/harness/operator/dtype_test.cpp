// 16-bit conversions against Eigen's, which share no code with ours.
#include "harness/operator/dtype.hpp"

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "harness/operator/generate.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

constexpr int kPatterns = 65536;

std::uint16_t eigen_f16_bits(float value) { return Eigen::half(value).x; }
float eigen_f16_value(std::uint16_t bits) {
  return static_cast<float>(Eigen::half(Eigen::half_impl::raw_uint16_to_half(bits)));
}
std::uint16_t eigen_bf16_bits(float value) { return Eigen::bfloat16(value).value; }
float eigen_bf16_value(std::uint16_t bits) {
  return static_cast<float>(Eigen::bfloat16(Eigen::bfloat16_impl::raw_uint16_to_bfloat16(bits)));
}

// Equal bits, or both NaN: the payload of a NaN is no one's promise.
bool same_f16(std::uint16_t a, std::uint16_t b) {
  const auto is_nan = [](std::uint16_t bits) { return (bits & 0x7fff) > 0x7c00; };
  return a == b || (is_nan(a) && is_nan(b));
}
bool same_bf16(std::uint16_t a, std::uint16_t b) {
  const auto is_nan = [](std::uint16_t bits) { return (bits & 0x7fff) > 0x7f80; };
  return a == b || (is_nan(a) && is_nan(b));
}
bool same_f32(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

// The float halfway between two neighbouring patterns, and the floats beside it: where rounding decides.
std::vector<float> around_midpoint(float low, float high) {
  const auto middle = static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
  const float infinity = std::numeric_limits<float>::infinity();
  return {std::nextafter(middle, -infinity), middle, std::nextafter(middle, infinity)};
}

}  // namespace

TEST_CASE("dtype: all 65536 patterns of f16 and bf16 have the value that Eigen gives them", "[dtype]") {
  int wrong_f16 = 0;
  int wrong_bf16 = 0;
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    wrong_f16 += same_f32(f16_value(bits), eigen_f16_value(bits)) ? 0 : 1;
    wrong_bf16 += same_f32(bf16_value(bits), eigen_bf16_value(bits)) ? 0 : 1;
  }
  CHECK(wrong_f16 == 0);
  CHECK(wrong_bf16 == 0);
}

TEST_CASE("dtype: every f16 and bf16 pattern survives the way to float and back", "[dtype]") {
  int wrong = 0;
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    wrong += same_f16(f16_bits(f16_value(bits)), bits) && same_bf16(bf16_bits(bf16_value(bits)), bits) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("dtype: floats around every rounding boundary become what Eigen makes of them", "[dtype]") {
  int wrong = 0;
  for (int pattern = 0; pattern < kPatterns - 1; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const auto next = static_cast<std::uint16_t>(pattern + 1);
    if (std::isfinite(f16_value(bits)) && std::isfinite(f16_value(next)))
      for (const float value : around_midpoint(f16_value(bits), f16_value(next)))
        wrong += same_f16(f16_bits(value), eigen_f16_bits(value)) ? 0 : 1;
    if (std::isfinite(bf16_value(bits)) && std::isfinite(bf16_value(next)))
      for (const float value : around_midpoint(bf16_value(bits), bf16_value(next)))
        wrong += same_bf16(bf16_bits(value), eigen_bf16_bits(value)) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("dtype: random floats of all magnitudes become what Eigen makes of them", "[dtype]") {
  std::mt19937 random(7);
  int wrong = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    wrong +=
        same_f16(f16_bits(value), eigen_f16_bits(value)) && same_bf16(bf16_bits(value), eigen_bf16_bits(value)) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("dtype: f16 rounds past 65504 to infinity and below 2^-25 to zero, ties to even", "[dtype]") {
  CHECK(f16_bits(65504.0F) == 0x7bff);
  CHECK(f16_bits(65519.99F) == 0x7bff);
  CHECK(f16_bits(65520.0F) == 0x7c00);
  CHECK(f16_bits(-1e30F) == 0xfc00);
  CHECK(f16_bits(0x1p-24F) == 1);
  CHECK(f16_bits(0x1p-25F) == 0);
  CHECK(f16_bits(0x1.000002p-25F) == 1);
  CHECK(f16_bits(-0.0F) == 0x8000);
  CHECK(bf16_bits(3.3895314e38F) == 0x7f7f);
  CHECK(bf16_bits(std::numeric_limits<float>::max()) == 0x7f80);
}

TEST_CASE("dtype: rounding of a product is not fused into it", "[dtype][generate]") {
  // f16_bits adds 0.5 to subnormals; a compiler that contracted that with normal_at's multiplication would round once
  // where two roundings are meant. Through memory that cannot be seen through, nothing can be contracted.
  const float scale = normal_scale(1e-5);  // subnormal in f16
  int wrong = 0;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    volatile float apart = normal_at(3, i, scale);
    wrong += normal_element<Dtype::f16>(3, i, scale) == f16_bits(apart) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("dtype: names and sizes", "[dtype]") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::i32})
    CHECK(parse_dtype(dtype_name(dtype)) == dtype);
  CHECK_FALSE(parse_dtype("fp16"));
  CHECK(dtype_bytes(Dtype::bf16) == 2);
  CHECK(dtype_bytes(Dtype::i32) == 4);
  CHECK(dtype_bytes(Dtype::u8) == 1);
}
