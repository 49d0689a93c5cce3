#include "reference/weight_quantization/errors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "reference/weight_quantization/tiles.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kSlab = 64;  // rows of D that are multiplied at once

// term(first, count) of every slab of rows, added up in their order.
template <class Term>
double sum_over_slabs(std::int64_t rows, int threads, const Term& term) {
  std::vector<double> terms(static_cast<std::size_t>((rows + kSlab - 1) / kSlab));
  parallel_for(std::ssize(terms), threads, [&](std::int64_t slab) {
    terms[static_cast<std::size_t>(slab)] = term(slab * kSlab, std::min(kSlab, rows - slab * kSlab));
  });
  return std::accumulate(terms.begin(), terms.end(), 0.0);
}

double relative(double error, double value) {
  if (error == 0) return 0;
  return value == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(error / value);
}

RowMajor to_double(const FloatMatrix& matrix, std::int64_t first, std::int64_t count) {
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const Floats>(matrix.data + first * matrix.columns, count, matrix.columns).cast<double>();
}

}  // namespace

std::vector<double> weight_errors(const QuantizedWeights& quantized, const FloatMatrix& weights, int threads) {
  std::vector<double> errors(quantized.codes.size());
  parallel_for(quantized.n, threads, [&](std::int64_t output) {
    std::vector<Grid> grids;
    for (std::int64_t group = 0; group < quantized.groups(); ++group) grids.push_back(quantized.grid(output, group));
    const std::span<const float> row = weights.row(output);
    for (std::int64_t input = 0; input < quantized.k; ++input) {
      const auto i = static_cast<std::size_t>(input);
      const std::size_t place = static_cast<std::size_t>(output) * row.size() + i;
      double worth = weight_of(grids[static_cast<std::size_t>(quantized.group_of(input))], quantized.codes[place]);
      if (!quantized.input_scales.empty()) worth /= quantized.input_scales[i];
      errors[place] = worth - row[i];
    }
  });
  return errors;
}

double output_objective(const std::vector<double>& errors, const Calibration& calibration, int threads) {
  const std::int64_t k = calibration.k;
  const std::int64_t n = std::ssize(errors) / k;
  const ConstSquare d(errors.data(), n, k);
  const ConstSquare h(calibration.hessian.data(), k, k);
  return sum_over_slabs(n, threads, [&](std::int64_t first, std::int64_t count) {
    const auto rows = d.middleRows(first, count);
    double sum = 0;
    for (std::int64_t j = 0; j < tiles_of(k); ++j) {  // H is symmetric: tiles above the diagonal count twice
      const Tile columns = tile(k, j);
      RowMajor product = 2 * rows.leftCols(columns.begin) * h.block(0, columns.begin, columns.begin, columns.size);
      product.noalias() += rows.middleCols(columns.begin, columns.size) *
                           h.block(columns.begin, columns.begin, columns.size, columns.size);
      sum += product.cwiseProduct(rows.middleCols(columns.begin, columns.size)).sum();
    }
    return sum;
  });
}

double weight_rel_error(const QuantizedWeights& quantized, const FloatMatrix& weights, int threads) {
  const std::vector<double> errors = weight_errors(quantized, weights, threads);
  const ConstSquare d(errors.data(), weights.rows, weights.columns);
  const double error = sum_over_slabs(weights.rows, threads, [&](std::int64_t first, std::int64_t count) {
    return d.middleRows(first, count).squaredNorm();
  });
  const double value = sum_over_slabs(weights.rows, threads, [&](std::int64_t first, std::int64_t count) {
    return to_double(weights, first, count).squaredNorm();
  });
  return relative(error, value);
}

double output_rel_error(const QuantizedWeights& quantized, const FloatMatrix& weights, const FloatMatrix& activations,
                        int threads) {
  const std::vector<double> errors = weight_errors(quantized, weights, threads);
  const ConstSquare d(errors.data(), weights.rows, weights.columns);
  const RowMajor x = to_double(activations, 0, activations.rows);
  const double error = sum_over_slabs(weights.rows, threads, [&](std::int64_t first, std::int64_t count) {
    return (x * d.middleRows(first, count).transpose()).squaredNorm();
  });
  const double value = sum_over_slabs(weights.rows, threads, [&](std::int64_t first, std::int64_t count) {
    return (x * to_double(weights, first, count).transpose()).squaredNorm();
  });
  return relative(error, value);
}

}  // namespace inferometer
