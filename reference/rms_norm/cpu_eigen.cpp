// rms_norm / cpu.eigen: half storage, float arithmetic on the host's vector units, squares summed in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "harness/operator/parallel.hpp"
#include "harness/operator/variant.hpp"
#include "reference/common/convert.hpp"
#include "reference/common/eigen.hpp"
#include "reference/rms_norm/problem.hpp"

namespace inferometer {
namespace {

using Problem = RmsNormProblem;
using Tensors = RmsNormTensors;
using Rows = Eigen::Array<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Gains = Eigen::Array<float, 1, Eigen::Dynamic>;

constexpr std::int64_t kPieceElements = std::int64_t{1} << 14;  // 64 KiB in float: a thread's piece stays in its L2

// Elements begin, ..., of X, or of H' where there is a residual stream, which is stored on the way.
void load_rows(const Problem& p, const Tensors& t, std::int64_t begin, Rows& rows) {
  load_floats(p.dtype, t.x, begin, rows.size(), rows.data());
  if (!p.residual) return;
  Rows h(rows.rows(), rows.cols());
  load_floats(p.dtype, t.h, begin, h.size(), h.data());
  h += rows;
  store_floats(p.dtype, h.data(), h.size(), t.h_sum, begin);
  load_floats(p.dtype, t.h_sum, begin, rows.size(), rows.data());
}

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  Gains w(p.hidden);
  load_floats(p.dtype, t.w, 0, p.hidden, w.data());
  const std::int64_t piece = std::max<std::int64_t>(1, kPieceElements / p.hidden);  // rows
  const std::int64_t pieces = (p.rows + piece - 1) / piece;
  parallel_for(pieces, launch.threads, [&](std::int64_t i) {
    const std::int64_t first = i * piece;
    Rows rows(std::min(piece, p.rows - first), p.hidden);
    load_rows(p, t, first * p.hidden, rows);
    Eigen::Array<double, 1, Eigen::Dynamic> exact(p.hidden);
    for (auto row : rows.rowwise()) {
      exact = row.cast<double>();  // by itself: Eigen adds doubles up in vectors, but not while it converts them
      row *= static_cast<float>(1 / std::sqrt(exact.square().mean() + p.eps));
      row *= w;
    }
    store_floats(p.dtype, rows.data(), rows.size(), t.y, first * p.hidden);
  });
}

const RegisterVariant<RmsNorm> registered{{
    .name = "cpu.eigen",
    .summary = "float arithmetic, a few rows at a time in cache, threads over rows",
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
