// What the kernels do otherwise than layout.hpp says it, for every input there is: 32,768 magnitudes of a 16-bit type.
#include "kernels/kv_append/group_scale.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/kv_append/e4m3.hpp"
#include "reference/kv_cache/quantize.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

constexpr KvCode kAllCodes[] = {KvCode::int8, KvCode::fp8_e4m3, KvCode::int4};

// Every finite magnitude of a type.
std::vector<float> magnitudes(Dtype dtype) {
  std::vector<float> values;
  const std::uint32_t infinity = dtype == Dtype::f16 ? 0x7c00U : 0x7f80U;
  for (std::uint32_t bits = 0; bits < infinity; ++bits)
    values.push_back(dtype == Dtype::f16 ? f16_value(static_cast<std::uint16_t>(bits))
                                         : bf16_value(static_cast<std::uint16_t>(bits)));
  return values;
}

// By the kernels' way.
std::uint32_t kernel_scale(float greatest, KvCode code) {
  const std::uint32_t rounded = f16_bits(append::unrounded_scale(greatest, largest_code(code)));
  return std::min(rounded, append::kLargestScale);
}

}  // namespace

TEST_CASE("kv_append kernels: the scale is that of a division, for every magnitude", "[kv_append]") {
  for (const KvCode code : kAllCodes)
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
      CAPTURE(static_cast<int>(code), dtype_name(dtype));
      int different = 0;
      for (const float greatest : magnitudes(dtype)) {
        std::vector<std::uint8_t> codes(2);
        std::vector<std::uint16_t> scales(1);
        quantize_kv_row(code, std::vector<float>{greatest, 0}, codes, scales);
        different += kernel_scale(greatest, code) == scales[0] ? 0 : 1;
      }
      CHECK(different == 0);
    }
}

TEST_CASE("kv_append kernels: where the scale is plain, no code needs to be clamped", "[kv_append]") {
  for (const KvCode code : {KvCode::int8, KvCode::int4})
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
      CAPTURE(static_cast<int>(code), dtype_name(dtype));
      int plain = 0;
      int past = 0;
      for (const float greatest : magnitudes(dtype)) {
        const std::uint32_t scale = kernel_scale(greatest, code);
        if (!append::is_plain_scale(scale)) continue;
        ++plain;
        // The group's other elements are smaller, and so are their products.
        const float scaled = greatest * (1 / f16_value(static_cast<std::uint16_t>(scale)));
        past += std::rint(scaled) > largest_code(code) ? 1 : 0;
      }
      CHECK(plain > 1000);
      CHECK(past == 0);
    }
}

TEST_CASE("kv_append kernels: FP8 in integer arithmetic equals the conversion by the specification", "[kv_append]") {
  const auto differs = [](float value) { return append::e4m3_bits(value) != e4m3_code(value); };
  int different = 0;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (const float magnitude : magnitudes(dtype)) different += differs(magnitude) + differs(-magnitude);
  // Products have 24 bits: around every number and every half-way value, the floats next to it.
  for (int code = 0; code < 0x7e; ++code) {
    const float below = e4m3_value(static_cast<std::uint8_t>(code));
    const float above = e4m3_value(static_cast<std::uint8_t>(code + 1));
    for (const float value : {below, (below + above) / 2, above})
      for (const float near : {value, std::nextafter(value, 0.0F), std::nextafter(value, 1000.0F)})
        different += differs(near) + differs(-near);
  }
  std::mt19937 random(11);
  std::uniform_real_distribution<float> uniform(-500, 500);
  for (int i = 0; i < 100000; ++i) different += differs(uniform(random)) + differs(uniform(random) * 0x1p-14F);
  CHECK(different == 0);
}
