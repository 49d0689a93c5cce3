// Sums over streamed activations, and the factor that GPTQ takes from them.
#include "reference/weight_quantization/calibration.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "reference/weight_quantization/inverse_factor.hpp"
#include "reference/weight_quantization/tiles.hpp"
#include "tests/reference/weight_quantization/layers.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

TEST_CASE("calibration: H is the mean of x x^T, and the magnitudes are means of |x|", "[weight_quantization]") {
  for (const std::int64_t k : {1, 5, 191, 192, 193, 400}) {
    for (const std::int64_t tokens : {1, 255, 256, 257, 600}) {
      CAPTURE(k, tokens);
      const RowMajorF x = correlated_activations(1, tokens, k);
      const Calibration c = calibrate(view(x), 2);
      const Eigen::MatrixXd xd = x.cast<double>();
      const Eigen::MatrixXd h = xd.transpose() * xd / static_cast<double>(tokens);
      CHECK(c.tokens == tokens);
      CHECK((hessian_of(c) - h).norm() <= 1e-13 * h.norm());
      CHECK(hessian_of(c) == hessian_of(c).transpose());
      for (std::int64_t i = 0; i < k; ++i)
        CHECK(c.mean_magnitude[static_cast<std::size_t>(i)] == Approx(xd.col(i).cwiseAbs().mean()));
    }
  }
}

TEST_CASE("calibration: neither the cut into calls nor threads change a bit", "[weight_quantization]") {
  const RowMajorF x = correlated_activations(2, 1000, 210);
  const Calibration whole = calibrate(view(x), 1);
  for (const int threads : {1, 2, 3}) {
    for (const std::int64_t piece : {1, 7, 256, 300}) {
      CAPTURE(threads, piece);
      CalibrationSums sums(210);
      for (std::int64_t first = 0; first < 1000; first += piece)
        sums.add({x.data() + first * 210, std::min<std::int64_t>(piece, 1000 - first), 210}, threads);
      const Calibration pieces = sums.finish(threads);
      CHECK(pieces.hessian == whole.hessian);
      CHECK(pieces.mean_magnitude == whole.mean_magnitude);
    }
  }
}

TEST_CASE("calibration: what is not finite is refused with its token and input", "[weight_quantization]") {
  RowMajorF x = correlated_activations(2, 20, 30);
  CalibrationSums sums(30);
  sums.add(view(x), 1);
  x(3, 8) = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH(sums.add(view(x), 1), "activations[23][8] must be finite, got inf");
  CHECK_THROWS_WITH(sums.add({x.data(), 20, 29}, 1), "activations must have 30 columns, one an input, got 29");
  CHECK_THROWS_AS(CalibrationSums(0), QuantizationError);
  CHECK(sums.finish(1).tokens == 20);  // nothing of what was refused
}

TEST_CASE("calibration: without tokens all means are 0; huge and tiny activations keep theirs",
          "[weight_quantization]") {
  CHECK(hessian_of(CalibrationSums(9).finish(1)) == Eigen::MatrixXd::Zero(9, 9));
  for (const float value : {3e38F, 1e-30F}) {
    const Calibration c = calibrate(view(RowMajorF::Constant(3, 4, value)), 1);
    CHECK(hessian_of(c)(2, 1) == Approx(static_cast<double>(value) * static_cast<double>(value)));
  }
}

TEST_CASE("inverse factor: U is upper triangular with H^-1 = U^T U, for any number of threads",
          "[weight_quantization]") {
  for (const std::int64_t k : {1, 2, 191, 192, 193, 500}) {
    CAPTURE(k);
    const Eigen::MatrixXd h = hessian_of(calibrate(view(correlated_activations(3, 3 * k + 10, k)), 1));
    const RowMajor reversed = h.reverse();
    std::vector<double> u(reversed.data(), reversed.data() + k * k);
    REQUIRE(invert_to_upper_factor(k, u, 1));
    const Eigen::MatrixXd upper = ConstSquare(u.data(), k, k);
    CHECK(upper.isUpperTriangular(0.0));
    CHECK((upper.diagonal().array() > 0).all());
    // H U^T U = 1: the condition number here is below 10^6.
    CHECK((h * (upper.transpose() * upper) - Eigen::MatrixXd::Identity(k, k)).norm() <= 1e-8);
    for (const int threads : {2, 3}) {
      std::vector<double> other(reversed.data(), reversed.data() + k * k);
      REQUIRE(invert_to_upper_factor(k, other, threads));
      CHECK(other == u);
    }
  }
}

TEST_CASE("inverse factor: what is not positive definite is refused, in any tile", "[weight_quantization]") {
  constexpr std::int64_t kSize = 400;
  for (const std::int64_t place : {0, 100, 192, 399}) {
    for (const double pivot : {0.0, -1.0, 1e-300, static_cast<double>(std::numeric_limits<float>::quiet_NaN())}) {
      Eigen::MatrixXd h = Eigen::MatrixXd::Identity(kSize, kSize);
      h(place, place) = pivot;
      std::vector<double> values(h.data(), h.data() + h.size());
      CAPTURE(place, pivot);
      // 1e-300 alone is as definite as any other number: only cancellation makes a pivot meaningless.
      CHECK(invert_to_upper_factor(kSize, values, 2) == (pivot > 0));
    }
    Eigen::MatrixXd twins = Eigen::MatrixXd::Identity(kSize, kSize);
    twins(place, (place + 1) % kSize) = twins((place + 1) % kSize, place) = 1;
    std::vector<double> values(twins.data(), twins.data() + twins.size());
    CHECK_FALSE(invert_to_upper_factor(kSize, values, 2));
  }
}
