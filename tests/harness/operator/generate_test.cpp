// The distribution of random inputs, and its golden values: recorded results depend on both.
#include "harness/operator/generate.hpp"

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("generate: mix_bits is SplitMix64", "[generate]") {
  // First outputs of the reference generator seeded with 0 and with 1234567 (Vigna, splitmix64.c).
  CHECK(mix_bits(0) == 0xe220a8397b1dcdafULL);
  CHECK(mix_bits(0x9e3779b97f4a7c15ULL) == 0x6e789e6aa1b965f4ULL);
  CHECK(mix_bits(1234567) == 6457827717110365317ULL);
}

TEST_CASE("generate: golden values never change, since recorded results depend on them", "[generate]") {
  const std::uint64_t key = stream_key(1, 0);
  const float scale = normal_scale(1.0);
  CHECK(key == 0xe9fd6049d65af21eULL);
  CHECK(normal_at(key, 0, scale) == -0x1.629552p+0F);
  CHECK(normal_at(key, 1, scale) == -0x1.0434fp+1F);
  CHECK(normal_at(key, 1'000'000'007, scale) == 0x1.ed7fc8p-1F);
  CHECK(normal_element<Dtype::f16>(key, 0, scale) == 0xbd8a);
  CHECK(normal_element<Dtype::bf16>(key, 0, scale) == 0xbfb1);
}

TEST_CASE("generate: a mean shifts every value by the same whole number of steps", "[generate]") {
  const std::uint64_t key = stream_key(3, 1);
  const float scale = normal_scale(0.25);
  const std::int32_t offset = normal_offset(1.0, 0.25);
  CHECK(offset == 151349);  // 4 standard deviations of 37837.23 steps
  CHECK(normal_offset(-1.0, 0.25) == -151349);
  CHECK(normal_offset(0, 0) == 0);
  double sum = 0;
  double smallest = 1;
  int wrong = 0;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    const float shifted = normal_at(key, i, scale, offset);
    // Both sums are exact in double, so that one rounding, of the product, tells them apart: half an ulp of each.
    const double exact = normal_at(key, i, scale) + static_cast<double>(offset) * scale;
    wrong += std::abs(shifted - exact) <= 2e-7 ? 0 : 1;
    sum += shifted;
    smallest = std::min<double>(smallest, shifted);
  }
  CHECK(wrong == 0);
  CHECK(std::abs(sum / 1e6 - 1.0) < 5 * 0.25 / 1e3);  // five standard errors
  CHECK(smallest > 0.13);                             // 1 - 3.4642 * 0.25
  CHECK(smallest < 0.2);
}

TEST_CASE("generate: random bytes are uniform, and can leave out the NaN of E4M3", "[generate]") {
  constexpr std::uint64_t kWords = 1'000'000;
  for (const bool without : {false, true}) {
    std::vector<std::int64_t> counts(256);
    for (std::uint64_t w = 0; w < kWords; ++w) {
      const std::uint64_t all = random_word(7, w, false);
      const std::uint64_t word = random_word(7, w, without);
      for (int byte = 0; byte < 8; ++byte) {
        const auto value = static_cast<std::uint8_t>(word >> (8 * byte));
        const auto original = static_cast<std::uint8_t>(all >> (8 * byte));
        ++counts[value];
        if ((original & 0x7fU) != 0x7fU && value != original) FAIL("a byte that is no NaN was changed");
      }
    }
    // 31250 of each value; its standard deviation is 177. Six of them.
    for (std::size_t value = 0; value < 256; ++value) {
      const bool is_nan = (value & 0x7fU) == 0x7fU;
      const bool is_largest = (value & 0x7fU) == 0x7eU;
      const double share = !without ? 1 : is_nan ? 0 : is_largest ? 2 : 1;
      CAPTURE(without, value);
      CHECK(std::abs(static_cast<double>(counts[value]) - share * 31250) <= share * 6 * 177);
    }
  }
}

TEST_CASE("generate: values have the moments of a normal distribution", "[generate]") {
  constexpr int kCount = 4'000'000;
  const std::uint64_t key = stream_key(42, 3);
  const float scale = normal_scale(2.0);
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  double largest = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double value = normal_at(key, i, scale);
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    largest = std::max(largest, std::abs(value));
  }
  const double variance = squares / kCount;
  // Bounds: five standard errors. Mean 2 / sqrt(n) = 0.001; variance 4 sqrt((kurtosis - 1) / n) = 0.0026.
  CHECK(std::abs(sum / kCount) < 5 * 0.001);
  CHECK(std::abs(variance - 4.0) < 5 * 0.0026);
  // A sum of n uniforms has kurtosis 3 - 6 / (5 n): 2.7 for four. Its standard error at 4 million is below 0.003.
  CHECK(std::abs(fourth / kCount / (variance * variance) - 2.7) < 0.015);
  CHECK(largest <= 2 * 3.4642);  // 131070 / 37837.23, the ends of the sum
  CHECK(largest > 2 * 3.2);      // reached with probability 1 - exp(-200) in 4 million
}

TEST_CASE("generate: neighbouring elements, tensors and seeds are uncorrelated", "[generate]") {
  constexpr int kCount = 1'000'000;
  const float scale = normal_scale(1.0);
  const std::uint64_t key = stream_key(1, 0);
  double next = 0;
  double other_tensor = 0;
  double other_seed = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double value = normal_at(key, i, scale);
    next += value * normal_at(key, i + 1, scale);
    other_tensor += value * normal_at(stream_key(1, 1), i, scale);
    other_seed += value * normal_at(stream_key(2, 0), i, scale);
  }
  // The mean of products of independent values has standard error 1 / sqrt(n) = 0.001; five of them.
  CHECK(std::abs(next / kCount) < 0.005);
  CHECK(std::abs(other_tensor / kCount) < 0.005);
  CHECK(std::abs(other_seed / kCount) < 0.005);
}

TEST_CASE("generate: streams of neighbouring seeds and tensors have keys far apart", "[generate]") {
  std::set<std::uint64_t> keys;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (std::uint64_t tensor = 0; tensor < 100; ++tensor) keys.insert(stream_key(seed, tensor));
  CHECK(keys.size() == 10'000);
}
