// AWQ: never worse than rounding by its own measure, better where inputs differ, scales that undo each other.
#include "reference/weight_quantization/awq.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/weight_quantization/rounding.hpp"
#include "tests/reference/weight_quantization/layers.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

AwqSettings settings(std::int64_t bits, bool symmetric, std::int64_t group_size) {
  return {.grid = {.format = {.bits = bits, .symmetric = symmetric}, .group_size = group_size}};
}

}  // namespace

TEST_CASE("awq: by its own objective it never loses to rounding", "[weight_quantization][awq]") {
  for (const GridFormat& format : all_formats()) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      for (const std::int64_t group_size : {32, 0}) {
        CAPTURE(format.bits, format.symmetric, seed, group_size);
        const RowMajorF w = random_weights(seed, 10, 72);
        const Calibration c = calibrate(view(correlated_activations(seed, 200, 72)), 1);
        const AwqSettings s = settings(format.bits, format.symmetric, group_size);
        const QuantizerResult made = quantize_awq(view(w), c, s, 2);
        check_codes_on_grid(made.weights);
        CHECK(*made.objective == Approx(objective_of(made.weights, w, c)).epsilon(1e-10));
        const double rounded = objective_of(quantize_rounding(view(w), s.grid, 1).weights, w, c);
        CHECK(*made.objective <= rounded * (1 + 1e-12));
      }
    }
  }
}

TEST_CASE("awq: where a few inputs carry most it is far better than rounding, with scales for them",
          "[weight_quantization][awq]") {
  double awq = 0;
  double rounded = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const RowMajorF w = random_weights(seed, 10, 128);
    const Calibration c = calibrate(view(correlated_activations(seed, 300, 128)), 1);
    const AwqSettings s = settings(4, true, 64);
    const QuantizerResult made = quantize_awq(view(w), c, s, 1);
    REQUIRE(made.weights.input_scales.size() == 128);
    const auto& scales = made.weights.input_scales;
    double large = 0;  // each 11th input is about ten times larger
    double others = 0;
    for (std::size_t i = 0; i < scales.size(); ++i) (i % 11 == 0 ? large : others) += static_cast<double>(scales[i]);
    CHECK(large / 12 > 1.5 * others / 116);
    CHECK(*std::min_element(scales.begin(), scales.end()) > 0);
    awq += *made.objective;
    rounded += objective_of(quantize_rounding(view(w), s.grid, 1).weights, w, c);
  }
  CHECK(awq < 0.6 * rounded);
}

TEST_CASE("awq: with ratio 0 alone and no clipping it is rounding", "[weight_quantization][awq]") {
  const RowMajorF w = random_weights(3, 10, 72);
  const Calibration c = calibrate(view(correlated_activations(3, 200, 72)), 1);
  AwqSettings s = settings(4, false, 32);
  s.ratios = 1;
  s.clip = false;
  check_same(quantize_awq(view(w), c, s, 1).weights, quantize_rounding(view(w), s.grid, 1).weights);
}

TEST_CASE("awq: threads change no bit of the result", "[weight_quantization][awq]") {
  const RowMajorF w = random_weights(4, 150, 200);
  const Calibration c = calibrate(view(correlated_activations(4, 500, 200)), 1);
  const QuantizerResult first = quantize_awq(view(w), c, settings(4, true, 64), 1);
  for (const int threads : {2, 3}) {
    CAPTURE(threads);
    const QuantizerResult other = quantize_awq(view(w), c, settings(4, true, 64), threads);
    check_same(other.weights, first.weights);
    CHECK(*other.objective == *first.objective);
  }
}

TEST_CASE("awq: silent inputs keep finite scales; without any live input it rounds and says so",
          "[weight_quantization][awq]") {
  const RowMajorF w = random_weights(4, 10, 64);
  RowMajorF x = correlated_activations(4, 200, 64);
  x.leftCols(20).setZero();
  const QuantizerResult made = quantize_awq(view(w), calibrate(view(x), 1), settings(4, true, 32), 1);
  check_codes_on_grid(made.weights);
  for (const float scale : made.weights.input_scales) CHECK((scale > 0 && std::isfinite(scale)));

  const QuantizerResult none =
      quantize_awq(view(w), calibrate(view(RowMajorF::Zero(5, 64)), 1), settings(4, true, 32), 1);
  CHECK(none.weights.codes == quantize_rounding(view(w), settings(4, true, 32).grid, 1).weights.codes);
  CHECK(none.weights.warnings ==
        std::vector<std::string>{
            "rounded to nearest instead of AWQ: every input is 0 in every token of the calibration"});
}

TEST_CASE("awq: no ratio at all is refused", "[weight_quantization][awq]") {
  const RowMajorF w = random_weights(4, 2, 32);
  AwqSettings s;
  s.ratios = 0;
  CHECK_THROWS_WITH(quantize_awq(view(w), calibrate(view(w), 1), s, 1), "ratios must be at least 1, got 0");
}
