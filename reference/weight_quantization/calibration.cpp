#include "reference/weight_quantization/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "harness/operator/parallel.hpp"
#include "reference/weight_quantization/quantized_weights.hpp"
#include "reference/weight_quantization/tiles.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kPendingTokens = 256;  // enough for a product of tiles to run at full speed

}  // namespace

CalibrationSums::CalibrationSums(std::int64_t k) : k_(k) {
  if (k < 1) throw QuantizationError("calibration: k must be at least 1, got " + std::to_string(k));
  const auto size = static_cast<std::size_t>(k);
  pending_.resize(kPendingTokens * size);
  sums_.resize(size * size);
  magnitudes_.resize(size);
}

void CalibrationSums::add(const FloatMatrix& activations, int threads) {
  if (activations.columns != k_)
    throw QuantizationError("activations must have " + std::to_string(k_) + " columns, one an input, got " +
                            std::to_string(activations.columns));
  require_finite("activations", activations, tokens_);
  for (std::int64_t token = 0; token < activations.rows; ++token) {
    const std::span<const float> row = activations.row(token);
    std::copy(row.begin(), row.end(), pending_.begin() + pending_tokens_ * k_);
    ++tokens_;
    if (++pending_tokens_ == kPendingTokens) add_pending(threads);
  }
}

void CalibrationSums::add_pending(int threads) {
  const ConstSquare x(pending_.data(), pending_tokens_, k_);
  for_each_lower_tile(tiles_of(k_), threads, [&](std::int64_t i, std::int64_t j) {
    const Tile rows = tile(k_, i);
    const Tile columns = tile(k_, j);
    Square(sums_.data(), k_, k_).block(rows.begin, columns.begin, rows.size, columns.size).noalias() +=
        x.middleCols(rows.begin, rows.size).transpose() * x.middleCols(columns.begin, columns.size);
  });
  for (std::int64_t token = 0; token < pending_tokens_; ++token)
    for (std::int64_t i = 0; i < k_; ++i) magnitudes_[static_cast<std::size_t>(i)] += std::abs(x(token, i));
  pending_tokens_ = 0;
}

Calibration CalibrationSums::finish(int threads) {
  if (pending_tokens_ > 0) add_pending(threads);
  const double share = tokens_ > 0 ? 1 / static_cast<double>(tokens_) : 0;
  Square sums(sums_.data(), k_, k_);
  parallel_for(tiles_of(k_), threads, [&](std::int64_t i) {
    const Tile rows = tile(k_, i);
    for (std::int64_t row = rows.begin; row < rows.end(); ++row)
      for (std::int64_t column = 0; column <= row; ++column) sums(row, column) *= share;
  });
  for_each_lower_tile(tiles_of(k_), threads, [&](std::int64_t i, std::int64_t j) {
    const Tile rows = tile(k_, i);
    const Tile columns = tile(k_, j);
    for (std::int64_t row = rows.begin; row < rows.end(); ++row)
      for (std::int64_t column = columns.begin; column < std::min(columns.end(), row); ++column)
        sums(column, row) = sums(row, column);
  });
  for (double& magnitude : magnitudes_) magnitude *= share;
  return {.k = k_, .tokens = tokens_, .hessian = std::move(sums_), .mean_magnitude = std::move(magnitudes_)};
}

Calibration calibrate(const FloatMatrix& activations, int threads) {
  CalibrationSums sums(activations.columns);
  sums.add(activations, threads);
  return sums.finish(threads);
}

}  // namespace inferometer
