#include "reference/weight_quantization/awq_clip.hpp"

#include <algorithm>

#include "reference/weight_quantization/grid_search.hpp"
#include "reference/weight_quantization/tiles.hpp"

namespace inferometer {
namespace {

constexpr int kParts = 10;  // besides the grid that there is
constexpr float kPart = 0.05F;
constexpr std::int64_t kSlab = 64;  // rows at once

// One group of some rows.
class GroupSlab {
 public:
  GroupSlab(const FloatMatrix& scaled, const RowMajor& hessian, Tile rows, Tile inputs, QuantizedWeights& quantized)
      : scaled_(scaled), hessian_(hessian), rows_(rows), inputs_(inputs), quantized_(quantized) {}

  void search(std::int64_t group) {
    std::vector<Grid> best;
    for (std::int64_t r = 0; r < rows_.size; ++r) best.push_back(quantized_.grid(rows_.begin + r, group));
    Eigen::VectorXd least = losses(best);
    for (int part = 1; part <= kParts; ++part) {
      std::vector<Grid> grids;
      for (std::int64_t r = 0; r < rows_.size; ++r)
        grids.push_back(part_of_range(quantized_.format, weights(r), 1 - kPart * static_cast<float>(part)));
      const Eigen::VectorXd found = losses(grids);
      for (std::int64_t r = 0; r < rows_.size; ++r) {
        if (!(found(r) < least(r))) continue;
        least(r) = found(r);
        best[static_cast<std::size_t>(r)] = grids[static_cast<std::size_t>(r)];
      }
    }
    for (std::int64_t r = 0; r < rows_.size; ++r) take(r, group, best[static_cast<std::size_t>(r)]);
  }

 private:
  std::span<const float> weights(std::int64_t r) const {
    return scaled_.row(rows_.begin + r)
        .subspan(static_cast<std::size_t>(inputs_.begin), static_cast<std::size_t>(inputs_.size));
  }

  // d H_gg d^T of each row on its grid.
  Eigen::VectorXd losses(const std::vector<Grid>& grids) const {
    RowMajor errors(rows_.size, inputs_.size);
    std::vector<float> worth(static_cast<std::size_t>(inputs_.size));
    for (std::int64_t r = 0; r < rows_.size; ++r) {
      const std::span<const float> row = weights(r);
      nearest_worth(quantized_.format, grids[static_cast<std::size_t>(r)], row, worth);
      for (std::size_t i = 0; i < row.size(); ++i)
        errors(r, static_cast<std::int64_t>(i)) = static_cast<double>(worth[i]) - row[i];
    }
    const RowMajor product = errors * hessian_;
    return product.cwiseProduct(errors).rowwise().sum();
  }

  void take(std::int64_t r, std::int64_t group, const Grid& grid) {
    const std::int64_t output = rows_.begin + r;
    quantized_.set_grid(output, group, grid);
    const std::span<const float> row = weights(r);
    std::int16_t* const codes = quantized_.codes.data() + output * quantized_.k + inputs_.begin;
    for (std::size_t i = 0; i < row.size(); ++i)
      codes[i] = static_cast<std::int16_t>(nearest_code(quantized_.format, grid, row[i]));
  }

  const FloatMatrix& scaled_;
  const RowMajor& hessian_;
  Tile rows_;
  Tile inputs_;
  QuantizedWeights& quantized_;
};

}  // namespace

void clip_groups(const FloatMatrix& scaled, const std::vector<float>& scales, const Calibration& calibration,
                 int threads, QuantizedWeights& quantized) {
  const std::int64_t k = calibration.k;
  const ConstSquare h(calibration.hessian.data(), k, k);
  const Eigen::Map<const Eigen::VectorXf> s(scales.data(), k);
  for (std::int64_t group = 0; group < quantized.groups(); ++group) {
    const Tile inputs{.begin = group * quantized.group_width(),
                      .size = std::min(quantized.group_width(), k - group * quantized.group_width())};
    const Eigen::VectorXd inverse = s.segment(inputs.begin, inputs.size).cast<double>().cwiseInverse();
    const RowMajor hessian =
        inverse.asDiagonal() * h.block(inputs.begin, inputs.begin, inputs.size, inputs.size) * inverse.asDiagonal();
    parallel_for((quantized.n + kSlab - 1) / kSlab, threads, [&](std::int64_t slab) {
      const Tile rows{.begin = slab * kSlab, .size = std::min(kSlab, quantized.n - slab * kSlab)};
      GroupSlab(scaled, hessian, rows, inputs, quantized).search(group);
    });
  }
}

}  // namespace inferometer
