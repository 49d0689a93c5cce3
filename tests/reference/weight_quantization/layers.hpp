// Small random layers for tests of the quantisers, and truths computed the long way round.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "harness/operator/generate.hpp"
#include "reference/common/eigen.hpp"
#include "reference/weight_quantization/calibration.hpp"
#include "reference/weight_quantization/errors.hpp"
#include "reference/weight_quantization/quantizer.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {

using RowMajorF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline FloatMatrix view(const RowMajorF& m) { return {m.data(), m.rows(), m.cols()}; }

inline RowMajorF random_matrix(std::uint64_t seed, std::uint64_t stream, std::int64_t rows, std::int64_t columns,
                               double stddev) {
  RowMajorF m(rows, columns);
  for (std::int64_t i = 0; i < m.size(); ++i)
    m.data()[i] = normal_at(stream_key(seed, stream), static_cast<std::uint64_t>(i), normal_scale(stddev));
  return m;
}

inline RowMajorF random_weights(std::uint64_t seed, std::int64_t n, std::int64_t k) {
  return random_matrix(seed, 1, n, k, 0.1);
}

// Tokens whose inputs share a few factors: neighbouring ones are strongly correlated, and some are ten times larger.
inline RowMajorF correlated_activations(std::uint64_t seed, std::int64_t tokens, std::int64_t k) {
  const RowMajorF factors = random_matrix(seed, 2, tokens, 4, 1.0);
  const RowMajorF loads = random_matrix(seed, 3, 4, k, 1.0);
  RowMajorF x = factors * loads + random_matrix(seed, 4, tokens, k, 0.5);
  for (std::int64_t i = 0; i < k; i += 11) x.col(i) *= 10;
  return x;
}

inline Calibration calibration_of(const Eigen::MatrixXd& hessian) {
  Calibration made{.k = hessian.rows(), .tokens = 1};
  made.hessian.assign(hessian.data(), hessian.data() + hessian.size());
  made.mean_magnitude.assign(static_cast<std::size_t>(made.k), 1.0);
  return made;
}

inline Eigen::MatrixXd hessian_of(const Calibration& c) {
  return Eigen::Map<const Eigen::MatrixXd>(c.hessian.data(), c.k, c.k);
}

// D, code by code.
inline Eigen::MatrixXd errors_of(const QuantizedWeights& quantized, const RowMajorF& weights) {
  Eigen::MatrixXd d(weights.rows(), weights.cols());
  for (std::int64_t j = 0; j < d.rows(); ++j)
    for (std::int64_t i = 0; i < d.cols(); ++i) d(j, i) = quantized.weight(j, i) - static_cast<double>(weights(j, i));
  return d;
}

inline double objective_of(const QuantizedWeights& quantized, const RowMajorF& weights, const Calibration& c) {
  const Eigen::MatrixXd d = errors_of(quantized, weights);
  return (d * hessian_of(c) * d.transpose()).trace();
}

inline std::vector<GridFormat> all_formats() {
  std::vector<GridFormat> formats;
  for (const std::int64_t bits : {8, 4, 3})
    for (const bool symmetric : {true, false}) formats.push_back({.bits = bits, .symmetric = symmetric});
  return formats;
}

inline void check_codes_on_grid(const QuantizedWeights& q) {
  for (const std::int16_t code : q.codes)
    if (code < q.format.least_code() || code > q.format.largest_code()) FAIL("code " << code << " is off the grid");
  for (std::int64_t j = 0; j < q.n; ++j)
    for (std::int64_t g = 0; g < q.groups(); ++g) {
      const Grid grid = q.grid(j, g);
      if (!std::isfinite(grid.scale) || grid.scale < 0) FAIL("scale " << grid.scale);
      if (grid.zero < 0 || grid.zero > (q.format.symmetric ? 0 : q.format.largest_code())) FAIL("zero " << grid.zero);
    }
  CHECK(q.codes.size() == static_cast<std::size_t>(q.n * q.k));
}

// Equal to the bit in everything that is handed on.
inline void check_same(const QuantizedWeights& a, const QuantizedWeights& b) {
  CHECK(a.codes == b.codes);
  CHECK(a.scales == b.scales);
  CHECK(a.zeros == b.zeros);
  CHECK(a.group_index == b.group_index);
  CHECK(a.input_scales == b.input_scales);
  CHECK(a.warnings == b.warnings);
}

}  // namespace inferometer::test
