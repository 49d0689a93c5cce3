#include "reference/weight_quantization/obq_recount.hpp"

#include <algorithm>

#include "reference/common/eigen.hpp"

namespace inferometer {

std::vector<std::int16_t> recount_by_obq(const FloatMatrix& weights, const Calibration& calibration,
                                         const QuantizerGrid& grid, double damping) {
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::int64_t n = weights.rows;
  const std::int64_t k = weights.columns;
  const std::int64_t width = grid.group_size == 0 ? k : grid.group_size;
  Eigen::MatrixXd w = Eigen::Map<const Floats>(weights.data, n, k).cast<double>();
  Eigen::MatrixXd h = Eigen::Map<const Eigen::MatrixXd>(calibration.hessian.data(), k, k);
  h.diagonal().array() += damping * h.diagonal().mean();
  Eigen::MatrixXd inverse = h.llt().solve(Eigen::MatrixXd::Identity(k, k));
  std::vector<std::int16_t> codes(static_cast<std::size_t>(n * k));
  std::vector<Grid> grids(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < k; ++i) {
    Eigen::VectorXd errors(n);
    for (std::int64_t j = 0; j < n; ++j) {
      Grid& chosen = grids[static_cast<std::size_t>(j)];
      if (i % width == 0) {
        const Eigen::VectorXf group = w.row(j).segment(i, std::min(width, k - i)).cast<float>();
        chosen = choose_grid(grid.format, grid.choice, {group.data(), static_cast<std::size_t>(group.size())});
      }
      const std::int32_t code = nearest_code(grid.format, chosen, static_cast<float>(w(j, i)));
      codes[static_cast<std::size_t>(j * k + i)] = static_cast<std::int16_t>(code);
      errors(j) = (w(j, i) - static_cast<double>(weight_of(chosen, code))) / inverse(i, i);
    }
    const std::int64_t rest = k - i - 1;
    const Eigen::VectorXd column = inverse.col(i).tail(rest);
    w.rightCols(rest) -= errors * column.transpose();
    inverse.bottomRightCorner(rest, rest) -= column * column.transpose() / inverse(i, i);
  }
  return codes;
}

}  // namespace inferometer
