// What holds of all quantisers: inputs that they refuse, weights at the ends of the range, bytes and errors reported.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "reference/weight_quantization/awq.hpp"
#include "reference/weight_quantization/gptq.hpp"
#include "reference/weight_quantization/rounding.hpp"
#include "tests/reference/weight_quantization/layers.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Quantize = std::function<QuantizerResult(const RowMajorF&, const Calibration&, const QuantizerGrid&)>;

const std::map<std::string, Quantize> kQuantizers = {
    {"rounding", [](const RowMajorF& w, const Calibration&,
                    const QuantizerGrid& grid) { return quantize_rounding(view(w), grid, 2); }},
    {"gptq", [](const RowMajorF& w, const Calibration& c,
                const QuantizerGrid& grid) { return quantize_gptq(view(w), c, {.grid = grid}, 2); }},
    {"gptq in activation order",
     [](const RowMajorF& w, const Calibration& c, const QuantizerGrid& grid) {
       return quantize_gptq(view(w), c, {.grid = grid, .order = ColumnOrder::activation}, 2);
     }},
    {"awq", [](const RowMajorF& w, const Calibration& c, const QuantizerGrid& grid) {
       return quantize_awq(view(w), c, {.grid = grid, .ratios = 4}, 2);
     }}};

}  // namespace

TEST_CASE("quantisers: weights that are not finite are refused with their place", "[weight_quantization]") {
  const Calibration c = calibrate(view(correlated_activations(1, 100, 40)), 1);
  for (const auto& [name, quantize] : kQuantizers) {
    CAPTURE(name);
    for (const auto& [value, text] : std::map<float, std::string>{{kInfinity, "inf"}, {-kInfinity, "-inf"}}) {
      RowMajorF w = random_weights(1, 5, 40);
      w(3, 17) = value;
      CHECK_THROWS_WITH(quantize(w, c, {.group_size = 32}), "weights[3][17] must be finite, got " + text);
    }
    RowMajorF w = random_weights(1, 5, 40);
    w(4, 39) = kNan;
    CHECK_THROWS_AS(quantize(w, c, {.group_size = 32}), QuantizationError);
    CHECK_THROWS_WITH(quantize(w, c, {.group_size = 32}), contains_text("weights[4][39] must be finite, got "));
    CHECK_THROWS_AS(quantize(RowMajorF(3, 0), c, {.group_size = 32}), QuantizationError);
  }
}

TEST_CASE("quantisers: bits, groups and scales that there are not are refused", "[weight_quantization]") {
  const Calibration c = calibrate(view(correlated_activations(1, 100, 40)), 1);
  const RowMajorF w = random_weights(1, 5, 40);
  for (const auto& [name, quantize] : kQuantizers) {
    CAPTURE(name);
    CHECK_THROWS_WITH(quantize(w, c, {.format = {.bits = 9}}), "bits must be 2 to 8, got 9");
    CHECK_THROWS_WITH(quantize(w, c, {.format = {.bits = 1}}), "bits must be 2 to 8, got 1");
    CHECK_THROWS_WITH(quantize(w, c, {.group_size = -1}), "group_size must be at least 0, got -1");
    CHECK_THROWS_WITH(quantize(w, c, {.format = {.scale_dtype = Dtype::f32}}),
                      "scale_dtype must be f16 or bf16, got f32");
  }
  CHECK_THROWS_WITH(quantize_gptq(view(w), c, {.damping = 1.5}, 1), contains_text("damping must be 0 to 1, got 1.5"));
  CHECK_THROWS_AS(quantize_gptq(view(w), c, {.damping = static_cast<double>(kNan)}, 1), QuantizationError);
  CHECK_THROWS_WITH(quantize_gptq(view(w), c, {.block = 0}, 1), "block must be at least 1, got 0");
}

TEST_CASE("quantisers: a calibration of another layer or with what is not finite is refused", "[weight_quantization]") {
  const RowMajorF w = random_weights(1, 5, 40);
  const Calibration other = calibrate(view(correlated_activations(1, 100, 41)), 1);
  Calibration broken = calibrate(view(correlated_activations(1, 100, 40)), 1);
  Calibration negative = broken;
  Calibration cut = broken;
  broken.hessian[2 * 40 + 7] = static_cast<double>(kNan);
  negative.hessian[3 * 40 + 3] = -1;
  cut.mean_magnitude.pop_back();
  for (const std::string name : {"gptq", "awq"}) {
    CAPTURE(name);
    const Quantize& quantize = kQuantizers.at(name);
    CHECK_THROWS_WITH(quantize(w, other, {}), "the calibration must be of the 40 inputs of the weights, got 41");
    CHECK_THROWS_WITH(quantize(w, broken, {}), contains_text("hessian[2][7] must be finite, got "));
    CHECK_THROWS_WITH(quantize(w, negative, {}),
                      contains_text("hessian[3][3] must be finite and not negative, got -1"));
    CHECK_THROWS_WITH(quantize(w, cut, {}), "mean_magnitude must hold 40 numbers, got 39");
  }
}

TEST_CASE("quantisers: zero rows, huge, tiny and mixed weights and short groups give finite codes on the grid",
          "[weight_quantization]") {
  const Calibration c = calibrate(view(correlated_activations(1, 200, 70)), 1);
  for (const auto& [name, quantize] : kQuantizers) {
    for (const GridFormat& format : all_formats()) {
      for (const float factor : {1.0F, 1e30F, 3e38F, 1e-8F, 1e-38F}) {
        CAPTURE(name, format.bits, format.symmetric, factor);
        RowMajorF w = factor * random_weights(1, 5, 70);
        w = w.cwiseMin(3e38F).cwiseMax(-3e38F);
        w.row(2).setZero();
        const QuantizedWeights made = quantize(w, c, {.format = format, .group_size = 32}).weights;
        check_codes_on_grid(made);
        for (std::int64_t j = 0; j < 5; ++j)
          for (std::int64_t i = 0; i < 70; ++i)
            if (!std::isfinite(made.weight(j, i))) FAIL("not finite");
        for (std::int64_t i = 0; i < 70; ++i) CHECK(made.weight(2, i) == 0.0);
      }
    }
  }
}

TEST_CASE("quantisers: no rows give no codes", "[weight_quantization]") {
  const Calibration c = calibrate(view(correlated_activations(1, 100, 40)), 1);
  for (const auto& [name, quantize] : kQuantizers) {
    CAPTURE(name);
    CHECK(quantize(RowMajorF(0, 40), c, {}).weights.codes.empty());
  }
}

TEST_CASE("quantisers: bits with their share of scales and zeros", "[weight_quantization]") {
  const RowMajorF w = random_weights(1, 4, 256);
  const auto bits = [&](std::int64_t of_code, bool symmetric, std::int64_t group_size) {
    return quantize_rounding(view(w), {.format = {.bits = of_code, .symmetric = symmetric}, .group_size = group_size},
                             1)
        .weights.bits_effective();
  };
  CHECK(bits(4, true, 128) == 4.125);
  CHECK(bits(4, false, 128) == 4.15625);
  CHECK(bits(3, true, 32) == 3.5);
  CHECK(bits(8, true, 0) == 8.0625);
}

TEST_CASE("rounding: the search for a scale never errs more, and less where a group has an outlier",
          "[weight_quantization]") {
  RowMajorF w = random_weights(6, 20, 128);
  for (std::int64_t j = 0; j < 20; ++j) w(j, 5 * j) *= 6;
  for (const GridFormat& format : all_formats()) {
    CAPTURE(format.bits, format.symmetric);
    QuantizerGrid grid{.format = format, .group_size = 64};
    const double plain = errors_of(quantize_rounding(view(w), grid, 1).weights, w).squaredNorm();
    grid.choice = GridChoice::least_squared_error;
    const double searched = errors_of(quantize_rounding(view(w), grid, 2).weights, w).squaredNorm();
    CHECK(searched <= plain);
    if (format.bits == 3) CHECK(searched < 0.9 * plain);
  }
}

TEST_CASE("errors: they are those of the definitions, for any number of threads", "[weight_quantization]") {
  const RowMajorF w = random_weights(8, 130, 200);
  const RowMajorF x = correlated_activations(8, 90, 200);
  const Calibration c = calibrate(view(x), 1);
  const QuantizedWeights made = quantize_awq(view(w), c, {.grid = {.group_size = 64}}, 1).weights;
  const Eigen::MatrixXd d = errors_of(made, w);
  const Eigen::MatrixXd xd = x.cast<double>();
  const Eigen::MatrixXd wd = w.cast<double>();
  CHECK(weight_rel_error(made, view(w), 1) == Approx(d.norm() / wd.norm()).epsilon(1e-12));
  CHECK(output_rel_error(made, view(w), view(x), 1) ==
        Approx((xd * d.transpose()).norm() / (xd * wd.transpose()).norm()).epsilon(1e-12));
  CHECK(output_objective(weight_errors(made, view(w), 1), c, 1) ==
        Approx((xd * d.transpose()).squaredNorm() / 90).epsilon(1e-10));
  for (const int threads : {2, 3}) {
    CHECK(weight_rel_error(made, view(w), threads) == weight_rel_error(made, view(w), 1));
    CHECK(output_rel_error(made, view(w), view(x), threads) == output_rel_error(made, view(w), view(x), 1));
  }
  const RowMajorF zeros = RowMajorF::Zero(3, 64);
  CHECK(weight_rel_error(quantize_rounding(view(zeros), {}, 1).weights, view(zeros), 1) == 0.0);
}
