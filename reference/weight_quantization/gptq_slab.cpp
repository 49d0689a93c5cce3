#include "reference/weight_quantization/gptq_slab.hpp"

#include <algorithm>
#include <numeric>

namespace inferometer {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

class Slab {
 public:
  Slab(const FloatMatrix& weights, const GptqSettings& settings, const ColumnPlan& plan, const std::vector<bool>& live,
       const ConstSquare& u, std::int64_t first, std::int64_t count, QuantizedWeights& made)
      : settings_(settings), plan_(plan), u_(u), first_(first), made_(made), w_(count, made.k) {
    for (std::int64_t position = 0; position < made.k; ++position) {
      const std::int64_t input = input_at(position);
      for (std::int64_t r = 0; r < count; ++r)
        w_(r, position) =
            live[static_cast<std::size_t>(input)] ? weights.row(first + r)[static_cast<std::size_t>(input)] : 0.0F;
    }
    grids_.resize(static_cast<std::size_t>(count));
    if (settings.static_groups) set_static_grids();
  }

  double run() {
    double squares = 0;
    for (std::int64_t begin = 0; begin < made_.k;) {
      const std::int64_t end = block_end(begin);
      squares += run_block(begin, end);
      begin = end;
    }
    return squares;
  }

 private:
  std::int64_t input_at(std::int64_t position) const { return plan_.input[static_cast<std::size_t>(position)]; }
  std::int64_t group_at(std::int64_t position) const { return plan_.group[static_cast<std::size_t>(position)]; }

  // Past the last neighbour in the same group.
  std::int64_t group_end(std::int64_t position) const {
    std::int64_t end = position + 1;
    while (end < made_.k && group_at(end) == group_at(position)) ++end;
    return end;
  }

  // A group's grid comes from weights that all columns before it have updated. So a block ends with a group, unless it
  // lies within one.
  std::int64_t block_end(std::int64_t begin) const {
    const std::int64_t most = std::min(begin + settings_.block, made_.k);
    if (settings_.static_groups) return most;
    std::int64_t end = group_end(begin);
    if (end >= most) return most;
    while (end < made_.k && group_end(end) <= most) end = group_end(end);
    return end;
  }

  Grid choose(std::int64_t r, const std::vector<std::int64_t>& positions) const {
    std::vector<float> group;
    group.reserve(positions.size());
    for (const std::int64_t position : positions) group.push_back(static_cast<float>(w_(r, position)));
    return choose_grid(settings_.grid.format, settings_.grid.choice, group);
  }

  void set_static_grids() {
    std::vector<std::vector<std::int64_t>> positions(static_cast<std::size_t>(made_.groups()));
    for (std::int64_t position = 0; position < made_.k; ++position)
      positions[static_cast<std::size_t>(group_at(position))].push_back(position);
    for (std::int64_t group = 0; group < made_.groups(); ++group)
      for (std::int64_t r = 0; r < w_.rows(); ++r)
        made_.set_grid(first_ + r, group, choose(r, positions[static_cast<std::size_t>(group)]));
  }

  // The grids of column `position`, into grids_.
  void take_grids(std::int64_t position) {
    const std::int64_t group = group_at(position);
    if (position > 0 && group_at(position - 1) == group) return;
    if (!settings_.static_groups) {
      std::vector<std::int64_t> positions;
      positions.resize(static_cast<std::size_t>(group_end(position) - position));
      std::iota(positions.begin(), positions.end(), position);
      for (std::int64_t r = 0; r < w_.rows(); ++r) made_.set_grid(first_ + r, group, choose(r, positions));
    }
    for (std::int64_t r = 0; r < w_.rows(); ++r) grids_[static_cast<std::size_t>(r)] = made_.grid(first_ + r, group);
  }

  double run_block(std::int64_t begin, std::int64_t end) {
    const std::int64_t width = end - begin;
    const MatrixXd within = u_.block(begin, begin, width, width).transpose();  // rows of U as columns
    MatrixXd errors(w_.rows(), width);
    for (std::int64_t i = 0; i < width; ++i) {
      take_grids(begin + i);
      round_column(begin + i);
      errors.col(i) = (w_.col(begin + i) - worth_) / within(i, i);
      const std::int64_t behind = width - i - 1;
      w_.middleCols(begin + i + 1, behind).noalias() -= errors.col(i) * within.col(i).tail(behind).transpose();
    }
    const std::int64_t rest = made_.k - end;
    w_.rightCols(rest).noalias() -= errors * u_.block(begin, end, width, rest);
    return errors.squaredNorm();
  }

  void round_column(std::int64_t position) {
    worth_.resize(w_.rows());
    for (std::int64_t r = 0; r < w_.rows(); ++r) {
      const Grid& grid = grids_[static_cast<std::size_t>(r)];
      const std::int32_t code = nearest_code(settings_.grid.format, grid, static_cast<float>(w_(r, position)));
      made_.codes[static_cast<std::size_t>((first_ + r) * made_.k + input_at(position))] =
          static_cast<std::int16_t>(code);
      worth_(r) = weight_of(grid, code);
    }
  }

  const GptqSettings& settings_;
  const ColumnPlan& plan_;
  const ConstSquare& u_;
  std::int64_t first_;
  QuantizedWeights& made_;
  MatrixXd w_;               // [count, k] by position, as updated so far
  VectorXd worth_;           // [count] of the last codes
  std::vector<Grid> grids_;  // [count] of the group at hand
};

}  // namespace

double gptq_slab(const FloatMatrix& weights, const GptqSettings& settings, const ColumnPlan& plan,
                 const std::vector<bool>& live, const ConstSquare& u, std::int64_t first, std::int64_t count,
                 QuantizedWeights& made) {
  return Slab(weights, settings, plan, live, u, first, count, made).run();
}

}  // namespace inferometer
