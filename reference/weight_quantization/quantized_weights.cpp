#include "reference/weight_quantization/quantized_weights.hpp"

namespace inferometer {
namespace {

std::size_t at(std::int64_t row, std::int64_t columns, std::int64_t column) {
  return static_cast<std::size_t>(row * columns + column);
}

void require(bool holds, const std::string& what, std::int64_t came) {
  if (!holds) throw QuantizationError(what + ", got " + std::to_string(came));
}

}  // namespace

Grid QuantizedWeights::grid(std::int64_t output, std::int64_t group) const {
  Grid grid;
  grid.scale_bits = scales[at(output, groups(), group)];
  grid.scale = format.scale_dtype == Dtype::f16 ? f16_value(grid.scale_bits) : bf16_value(grid.scale_bits);
  if (!format.symmetric) grid.zero = zeros[at(output, groups(), group)];
  return grid;
}

void QuantizedWeights::set_grid(std::int64_t output, std::int64_t group, const Grid& grid) {
  scales[at(output, groups(), group)] = grid.scale_bits;
  if (!format.symmetric) zeros[at(output, groups(), group)] = static_cast<std::uint8_t>(grid.zero);
}

double QuantizedWeights::weight(std::int64_t output, std::int64_t input) const {
  const double worth = weight_of(grid(output, group_of(input)), codes[at(output, k, input)]);
  return input_scales.empty() ? worth : worth / input_scales[static_cast<std::size_t>(input)];
}

double QuantizedWeights::bits_effective() const {
  const auto grids = static_cast<double>(n * groups());
  const double grid_bits = format.symmetric ? 16.0 : 16.0 + static_cast<double>(format.bits);
  const auto weights = static_cast<double>(n * k);
  return static_cast<double>(format.bits) +
         (grids * grid_bits + 32.0 * static_cast<double>(group_index.size())) / weights;
}

QuantizedWeights make_quantized_weights(std::int64_t n, std::int64_t k, const GridFormat& format,
                                        std::int64_t group_size) {
  require(n >= 0, "n must be at least 0", n);
  require(k >= 0, "k must be at least 0", k);
  require(group_size >= 0, "group_size must be at least 0", group_size);
  require(format.bits >= 2 && format.bits <= 8, "bits must be 2 to 8", format.bits);
  if (format.scale_dtype != Dtype::f16 && format.scale_dtype != Dtype::bf16)
    throw QuantizationError("scale_dtype must be f16 or bf16, got " + std::string(dtype_name(format.scale_dtype)));
  QuantizedWeights made{.n = n, .k = k, .format = format, .group_size = group_size};
  made.codes.resize(static_cast<std::size_t>(n * k));
  made.scales.resize(static_cast<std::size_t>(n * made.groups()));
  if (!format.symmetric) made.zeros.resize(made.scales.size());
  return made;
}

}  // namespace inferometer
