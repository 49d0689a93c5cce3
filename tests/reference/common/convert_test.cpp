// Block conversions against the element-wise ones of the harness.
#include "reference/common/convert.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

// 37 elements: whole vectors of every width, and a rest.
constexpr std::int64_t kCount = 37;

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

TEST_CASE("convert: every f16 and bf16 value loads as the harness reads it", "[reference][convert]") {
  std::vector<std::uint16_t> stored(1U << 16);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::uint16_t>(i);
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    CAPTURE(dtype_name(dtype));
    int wrong = 0;
    for (std::int64_t begin = 0; begin < std::ssize(stored); begin += kCount) {
      const std::int64_t count = std::min<std::int64_t>(kCount, std::ssize(stored) - begin);
      float loaded[kCount];
      load_floats(dtype, stored.data(), begin, count, loaded);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto bits = stored[static_cast<std::size_t>(begin + i)];
        wrong += same(loaded[i], dtype == Dtype::f16 ? f16_value(bits) : bf16_value(bits)) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("convert: floats of every exponent are stored as the harness rounds them", "[reference][convert]") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    CAPTURE(dtype_name(dtype));
    int wrong = 0;
    constexpr std::uint64_t kStep = 65521;  // a prime near 2^16: 65,000 floats with mantissas of all kinds
    for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += kStep * kCount) {
      float values[kCount];
      for (std::int64_t i = 0; i < kCount; ++i)
        values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first + static_cast<std::uint64_t>(i) * kStep));
      std::uint16_t stored[kCount + 1];
      store_floats(dtype, values, kCount, stored, 1);
      for (std::int64_t i = 0; i < kCount; ++i) {
        if (std::isnan(values[i])) continue;
        wrong += stored[i + 1] == (dtype == Dtype::f16 ? f16_bits(values[i]) : bf16_bits(values[i])) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("convert: f32 is copied, and nothing outside the range is touched", "[reference][convert]") {
  const std::vector<float> values = {1, 2, 3, 4, 5};
  std::vector<float> copy(7, -1.0F);
  load_floats(Dtype::f32, values.data(), 1, 3, copy.data() + 2);
  CHECK(copy == std::vector<float>{-1, -1, 2, 3, 4, -1, -1});
  store_floats(Dtype::f32, values.data(), 2, copy.data(), 5);
  CHECK(copy == std::vector<float>{-1, -1, 2, 3, 4, 1, 2});
}
