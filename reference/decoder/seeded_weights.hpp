// Random weights of a named shape, the same on every machine and device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reference/decoder/problem.hpp"

namespace inferometer {

class SeededWeights : public DecoderWeights {
 public:
  SeededWeights(DecoderShape shape, std::uint64_t seed);  // throws ProblemError for a shape that cannot be

  const DecoderShape& shape() const override { return shape_; }
  void read(const PlacedWeight& tensor, std::int64_t row, std::int64_t rows,
            std::span<std::uint16_t> to) const override;
  std::optional<std::uint64_t> seed() const override { return seed_; }

 private:
  DecoderShape shape_;
  std::uint64_t seed_;
};

}  // namespace inferometer
