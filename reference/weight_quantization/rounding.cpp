#include "reference/weight_quantization/rounding.hpp"

#include <algorithm>

#include "harness/operator/parallel.hpp"

namespace inferometer {

QuantizerResult quantize_rounding(const FloatMatrix& weights, const QuantizerGrid& grid, int threads) {
  const QuantizerClock clock;
  check_weights(weights);
  QuantizerResult result{.weights =
                             make_quantized_weights(weights.rows, weights.columns, grid.format, grid.group_size)};
  QuantizedWeights& made = result.weights;
  parallel_for(made.n, threads, [&](std::int64_t output) {
    const std::span<const float> row = weights.row(output);
    const std::span<std::int16_t> codes(made.codes.data() + output * made.k, row.size());
    for (std::int64_t group = 0; group < made.groups(); ++group) {
      const std::int64_t begin = group * made.group_width();
      const std::int64_t end = std::min(begin + made.group_width(), made.k);
      const auto first = static_cast<std::size_t>(begin);
      const Grid chosen =
          choose_grid(grid.format, grid.choice, row.subspan(first, static_cast<std::size_t>(end - begin)));
      made.set_grid(output, group, chosen);
      for (std::size_t i = first; i < static_cast<std::size_t>(end); ++i)
        codes[i] = static_cast<std::int16_t>(nearest_code(grid.format, chosen, row[i]));
    }
  });
  result.seconds = clock.seconds();
  return result;
}

}  // namespace inferometer
