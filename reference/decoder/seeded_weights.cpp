#include "reference/decoder/seeded_weights.hpp"

#include <utility>

#include "harness/operator/generate.hpp"

namespace inferometer {

SeededWeights::SeededWeights(DecoderShape shape, std::uint64_t seed) : shape_(std::move(shape)), seed_(seed) {
  check(shape_);
}

void SeededWeights::read(const PlacedWeight& tensor, std::int64_t row, std::int64_t rows,
                         std::span<std::uint16_t> to) const {
  const SeededValues values = seeded_values(shape_, seed_, tensor);
  const std::int64_t columns = weight_size(shape_, tensor.weight).columns;
  const auto first = static_cast<std::uint64_t>(row * columns);
  for (std::int64_t i = 0; i < rows * columns; ++i)
    to[static_cast<std::size_t>(i)] =
        normal_element<Dtype::f16>(values.key, first + static_cast<std::uint64_t>(i), values.scale, values.offset);
}

}  // namespace inferometer
