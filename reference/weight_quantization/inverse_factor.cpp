#include "reference/weight_quantization/inverse_factor.hpp"

#include <algorithm>
#include <cstddef>

#include "reference/weight_quantization/tiles.hpp"

namespace inferometer {
namespace {

using Eigen::Lower;
using Eigen::MatrixXd;
using Eigen::OnTheRight;
using Eigen::Upper;

// The diagonal tile alone. NaN fails too.
bool factorize_tile(Square& a, Tile t, const Eigen::VectorXd& diagonal, double least_pivot) {
  const Eigen::LLT<MatrixXd> factor(a.block(t.begin, t.begin, t.size, t.size));
  if (factor.info() != Eigen::Success) return false;
  const MatrixXd l = factor.matrixL();
  for (std::int64_t i = 0; i < t.size; ++i)
    if (!(l(i, i) * l(i, i) > least_pivot * diagonal(t.begin + i))) return false;
  a.block(t.begin, t.begin, t.size, t.size) = l;
  return true;
}

// A = L L^T in its lower tiles, right-looking: each finished column of tiles is taken off all that are to its right.
bool factorize(std::int64_t k, Square& a, int threads) {
  const Eigen::VectorXd diagonal = a.diagonal();
  const double least_pivot = static_cast<double>(k) * 0x1p-52;
  const std::int64_t tiles = tiles_of(k);
  for (std::int64_t p = 0; p < tiles; ++p) {
    const Tile panel = tile(k, p);
    if (!factorize_tile(a, panel, diagonal, least_pivot)) return false;
    const MatrixXd l = a.block(panel.begin, panel.begin, panel.size, panel.size);
    parallel_for(tiles - p - 1, threads, [&](std::int64_t i) {
      const Tile rows = tile(k, p + 1 + i);
      MatrixXd below = a.block(rows.begin, panel.begin, rows.size, panel.size);
      l.transpose().triangularView<Upper>().solveInPlace<OnTheRight>(below);
      a.block(rows.begin, panel.begin, rows.size, panel.size) = below;
    });
    for_each_lower_tile(tiles - p - 1, threads, [&](std::int64_t i, std::int64_t j) {
      const Tile rows = tile(k, p + 1 + i);
      const Tile columns = tile(k, p + 1 + j);
      a.block(rows.begin, columns.begin, rows.size, columns.size).noalias() -=
          a.block(rows.begin, panel.begin, rows.size, panel.size) *
          a.block(columns.begin, panel.begin, columns.size, panel.size).transpose();
    });
  }
  return true;
}

// L to M = L^-1 in place, a row of tiles after the other: M_ii = L_ii^-1, M_ij = -M_ii sum over j <= m < i of L_im
// M_mj.
void invert_lower(std::int64_t k, Square& a, int threads) {
  for (std::int64_t i = 0; i < tiles_of(k); ++i) {
    const Tile rows = tile(k, i);
    const MatrixXd diagonal = a.block(rows.begin, rows.begin, rows.size, rows.size);
    MatrixXd inverse = MatrixXd::Identity(rows.size, rows.size);
    diagonal.triangularView<Lower>().solveInPlace(inverse);
    const RowMajor left = a.block(rows.begin, 0, rows.size, rows.begin);
    parallel_for(i, threads, [&](std::int64_t j) {
      const Tile columns = tile(k, j);
      const std::int64_t depth = rows.begin - columns.begin;
      const MatrixXd sum =
          left.middleCols(columns.begin, depth) * a.block(columns.begin, columns.begin, depth, columns.size);
      a.block(rows.begin, columns.begin, rows.size, columns.size).noalias() = -inverse * sum;
    });
    a.block(rows.begin, rows.begin, rows.size, rows.size) = inverse;
  }
}

}  // namespace

bool invert_to_upper_factor(std::int64_t k, std::vector<double>& matrix, int threads) {
  Square a(matrix.data(), k, k);
  a.triangularView<Eigen::StrictlyUpper>().setZero();
  if (!factorize(k, a, threads)) return false;
  invert_lower(k, a, threads);
  std::reverse(matrix.begin(), matrix.end());  // element (i, j) of a [k, k] array goes to (k - 1 - i, k - 1 - j)
  return true;
}

}  // namespace inferometer
