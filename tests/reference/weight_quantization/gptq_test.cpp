// GPTQ against hand calculations, against its own identity, and against plain rounding.
#include "reference/weight_quantization/gptq.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/weight_quantization/obq_recount.hpp"
#include "reference/weight_quantization/rounding.hpp"
#include "tests/reference/weight_quantization/layers.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

const std::vector<ColumnOrder> kOrders = {ColumnOrder::given, ColumnOrder::whole_groups, ColumnOrder::activation};

GptqSettings settings(std::int64_t bits, bool symmetric, std::int64_t group_size, double damping = 0.01) {
  return {.grid = {.format = {.bits = bits, .symmetric = symmetric}, .group_size = group_size}, .damping = damping};
}

}  // namespace

TEST_CASE("gptq: two weights by hand", "[weight_quantization][gptq]") {
  // Step 1: the third weight, which no other one knows of, sets a scale of 7 / 7.
  Eigen::MatrixXd h(3, 3);
  h << 1, 0.9, 0, 0.9, 1, 0, 0, 0, 1;
  RowMajorF w(1, 3);
  w << 0.4F, 0.4F, 7.0F;
  const QuantizerResult made = quantize_gptq(view(w), calibration_of(h), settings(4, true, 0, 0.0), 1);
  CHECK(made.weights.codes == std::vector<std::int16_t>{0, 1, 7});
  // e = (0.4, 0.76 - 1): 0.4^2 + 0.6^2 - 2 * 0.9 * 0.4 * 0.6. The weights are the nearest floats to 0.4.
  CHECK(*made.objective == Approx(0.088).epsilon(1e-6));
  CHECK(*made.damping == 0.0);
  const QuantizedWeights rounded = quantize_rounding(view(w), {.group_size = 0}, 1).weights;
  CHECK(rounded.codes == std::vector<std::int16_t>{0, 0, 7});
  CHECK(objective_of(rounded, w, calibration_of(h)) == Approx(0.608).epsilon(1e-6));
}

TEST_CASE("gptq: the sum of squared scaled errors is tr(D H D^T), in every order", "[weight_quantization][gptq]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const RowMajorF w = random_weights(seed, 70, 200);
    const Calibration c = calibrate(view(correlated_activations(seed, 600, 200)), 2);
    for (const ColumnOrder order : kOrders) {
      for (const bool is_static : {false, true}) {
        for (const double damping : {0.0, 0.01, 0.5}) {
          CAPTURE(seed, static_cast<int>(order), is_static, damping);
          GptqSettings s = settings(4, false, 64, damping);
          s.order = order;
          s.static_groups = is_static;
          const QuantizerResult made = quantize_gptq(view(w), c, s, 2);
          check_codes_on_grid(made.weights);
          // With damping the objective is a difference: of tr(D (H + damping) D^T), here up to 10^3 times as large.
          const double relative = damping == 0 ? 1e-10 : 1e-7;
          CHECK(*made.objective == Approx(objective_of(made.weights, w, c)).epsilon(relative).margin(0));
        }
      }
    }
  }
}

TEST_CASE("gptq: the codes are those of Optimal Brain Quantization in its first form", "[weight_quantization][gptq]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const RowMajorF w = random_weights(seed, 8, 96);
    const Calibration c = calibrate(view(correlated_activations(seed, 400, 96)), 1);
    for (const bool symmetric : {true, false}) {
      CAPTURE(seed, symmetric);
      const GptqSettings s = settings(4, symmetric, 32, 0.05);
      const QuantizedWeights made = quantize_gptq(view(w), c, s, 2).weights;
      CHECK(made.codes == recount_by_obq(view(w), c, s.grid, s.damping));
    }
  }
}

TEST_CASE("gptq: blocks and threads change no bit of the result", "[weight_quantization][gptq]") {
  for (const std::int64_t group_size : {32, 48, 128, 0}) {
    for (const ColumnOrder order : kOrders) {
      const RowMajorF w = random_weights(3, 130, 300);
      const Calibration c = calibrate(view(correlated_activations(3, 900, 300)), 2);
      GptqSettings s = settings(4, false, group_size);
      s.order = order;
      const QuantizerResult first = quantize_gptq(view(w), c, s, 1);
      for (const int threads : {2, 3}) {
        CAPTURE(group_size, static_cast<int>(order), threads);
        const QuantizerResult other = quantize_gptq(view(w), c, s, threads);
        check_same(other.weights, first.weights);
        CHECK(*other.objective == *first.objective);
      }
      for (const std::int64_t block : {1, 32, 100}) {
        CAPTURE(group_size, static_cast<int>(order), block);
        s.block = block;
        check_same(quantize_gptq(view(w), c, s, 2).weights, first.weights);
      }
    }
  }
}

TEST_CASE("gptq: without correlation it is rounding to nearest", "[weight_quantization][gptq]") {
  const RowMajorF w = random_weights(7, 20, 160);
  Eigen::VectorXd diagonal(160);
  for (std::int64_t i = 0; i < 160; ++i) diagonal(i) = 1 + static_cast<double>(i * 37 % 160);
  const Calibration identity = calibration_of(Eigen::MatrixXd::Identity(160, 160));
  const Calibration uneven = calibration_of(diagonal.asDiagonal());
  for (const GridFormat& format : all_formats()) {
    for (const std::int64_t group_size : {32, 64, 0}) {
      const QuantizerGrid grid{.format = format, .group_size = group_size};
      const QuantizedWeights rounded = quantize_rounding(view(w), grid, 2).weights;
      for (const ColumnOrder order : {ColumnOrder::given, ColumnOrder::whole_groups}) {
        CAPTURE(format.bits, format.symmetric, group_size, static_cast<int>(order));
        const GptqSettings s{.grid = grid, .order = order};
        check_same(quantize_gptq(view(w), identity, s, 2).weights, rounded);
        check_same(quantize_gptq(view(w), uneven, s, 2).weights, rounded);
      }
    }
  }
}

TEST_CASE("gptq: over 100 correlated layers its mean loss is far below rounding's", "[weight_quantization][gptq]") {
  for (const std::int64_t bits : {4, 3}) {
    double gptq = 0;
    double rounded = 0;
    double ordered = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      const RowMajorF w = random_weights(seed, 8, 64);
      const Calibration c = calibrate(view(correlated_activations(seed, 256, 64)), 1);
      GptqSettings s = settings(bits, true, 32);
      gptq += *quantize_gptq(view(w), c, s, 1).objective;
      s.order = ColumnOrder::whole_groups;
      ordered += *quantize_gptq(view(w), c, s, 1).objective;
      rounded += objective_of(quantize_rounding(view(w), s.grid, 1).weights, w, c);
    }
    CAPTURE(bits, gptq, ordered, rounded);
    CHECK(gptq < 0.7 * rounded);
    CHECK(ordered < gptq);
  }
}

TEST_CASE("gptq: an input that is always 0 gets weights of 0, and the others are as without it",
          "[weight_quantization][gptq]") {
  constexpr std::int64_t kDead = 40;
  const RowMajorF w = random_weights(5, 30, 64);
  RowMajorF x = correlated_activations(5, 300, 64);
  x.col(kDead).setZero();
  RowMajorF without_w(30, 63);
  RowMajorF without_x(300, 63);
  without_w << w.leftCols(kDead), w.rightCols(63 - kDead);
  without_x << x.leftCols(kDead), x.rightCols(63 - kDead);
  for (const bool symmetric : {true, false}) {
    CAPTURE(symmetric);
    // One group, so that both have the same grids.
    const GptqSettings s = settings(4, symmetric, 0);
    const QuantizedWeights made = quantize_gptq(view(w), calibrate(view(x), 1), s, 2).weights;
    const QuantizedWeights other = quantize_gptq(view(without_w), calibrate(view(without_x), 1), s, 2).weights;
    CHECK(made.scales == other.scales);
    CHECK(made.zeros == other.zeros);
    CHECK(made.warnings.empty());
    for (std::int64_t j = 0; j < 30; ++j) {
      CHECK(made.weight(j, kDead) == 0.0);
      for (std::int64_t i = 0; i < 63; ++i) CHECK(made.weight(j, i < kDead ? i : i + 1) == other.weight(j, i));
    }
  }
}

TEST_CASE("gptq: without a live input it rounds to nearest and says so", "[weight_quantization][gptq]") {
  const RowMajorF w = random_weights(5, 6, 64);
  const Calibration c = calibrate(view(RowMajorF::Zero(10, 64)), 1);
  const QuantizerResult made = quantize_gptq(view(w), c, settings(4, true, 32), 1);
  CHECK(made.weights.codes == quantize_rounding(view(w), settings(4, true, 32).grid, 1).weights.codes);
  CHECK(made.weights.warnings == std::vector<std::string>{"rounded to nearest instead of GPTQ: every input is 0 in "
                                                          "every token of the calibration"});
  CHECK_FALSE(made.damping.has_value());
  CHECK(*made.objective == 0.0);
}

TEST_CASE("gptq: a factorisation that fails is tried with more damping, then given up, each with a warning",
          "[weight_quantization][gptq]") {
  const RowMajorF w = random_weights(5, 6, 64);
  // Of rank 10: not definite as it is.
  const Calibration singular = calibrate(view(correlated_activations(9, 10, 64)), 1);
  const QuantizerResult raised = quantize_gptq(view(w), singular, settings(4, true, 32, 0.0), 1);
  CHECK(*raised.damping == 0.01);
  CHECK(raised.weights.warnings ==
        std::vector<std::string>{"H is not positive definite with a damping of 0; 0.01 was taken"});
  CHECK(*raised.objective < objective_of(quantize_rounding(view(w), {.group_size = 32}, 1).weights, w, singular));

  Eigen::MatrixXd indefinite = Eigen::MatrixXd::Identity(64, 64);
  indefinite(3, 50) = indefinite(50, 3) = 5;
  const QuantizerResult given_up = quantize_gptq(view(w), calibration_of(indefinite), settings(4, true, 32), 1);
  CHECK_FALSE(given_up.damping.has_value());
  CHECK(given_up.weights.codes == quantize_rounding(view(w), {.group_size = 32}, 1).weights.codes);
  CHECK(given_up.weights.warnings ==
        std::vector<std::string>{"rounded to nearest instead of GPTQ: H is not positive definite, even with a damping "
                                 "of 1"});
}

TEST_CASE("gptq: act-order says which group an input is in, orders of whole groups need not",
          "[weight_quantization][gptq]") {
  const RowMajorF w = random_weights(2, 12, 100);
  const Calibration c = calibrate(view(correlated_activations(2, 400, 100)), 1);
  GptqSettings s = settings(4, false, 32);
  s.order = ColumnOrder::activation;
  const QuantizedWeights made = quantize_gptq(view(w), c, s, 1).weights;
  REQUIRE(made.group_index.size() == 100);
  std::vector<std::int64_t> members(4);
  for (const std::int32_t group : made.group_index) ++members[static_cast<std::size_t>(group)];
  CHECK(members == std::vector<std::int64_t>{32, 32, 32, 4});
  // Every input of an earlier group carries at least as much as every one of a later group.
  const Eigen::MatrixXd h = hessian_of(c);
  for (std::int64_t a = 0; a < 100; ++a)
    for (std::int64_t b = 0; b < 100; ++b)
      if (made.group_of(a) < made.group_of(b)) CHECK(h(a, a) >= h(b, b));

  s.static_groups = true;
  CHECK(quantize_gptq(view(w), c, s, 1).weights.group_index.empty());
  s.static_groups = false;
  s.order = ColumnOrder::whole_groups;
  CHECK(quantize_gptq(view(w), c, s, 1).weights.group_index.empty());
  s.order = ColumnOrder::activation;
  s.grid.group_size = 0;  // one group: no question which
  CHECK(quantize_gptq(view(w), c, s, 1).weights.group_index.empty());
}

TEST_CASE("gptq: static groups have the grids of the weights as given", "[weight_quantization][gptq]") {
  const RowMajorF w = random_weights(2, 12, 100);
  const Calibration c = calibrate(view(correlated_activations(2, 400, 100)), 1);
  for (const ColumnOrder order : kOrders) {
    GptqSettings s = settings(4, false, 32);
    s.static_groups = true;
    s.order = order;
    const QuantizedWeights made = quantize_gptq(view(w), c, s, 1).weights;
    const QuantizedWeights rounded = quantize_rounding(view(w), s.grid, 1).weights;
    CHECK(made.scales == rounded.scales);
    CHECK(made.zeros == rounded.zeros);
    CHECK(made.codes != rounded.codes);
  }
}
