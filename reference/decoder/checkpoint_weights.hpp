// The weights of a model in safetensors files, under the names that transformers gives them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reference/checkpoint/model_files.hpp"
#include "reference/decoder/problem.hpp"

namespace inferometer {

class CheckpointWeights : public DecoderWeights {
 public:
  // `folder`: config.json beside model.safetensors, or the parts that model.safetensors.index.json names. Every tensor
  // of the shape must be there, in its size, as F16, BF16 or F32. Throws ConfigError and CheckpointError.
  explicit CheckpointWeights(const std::string& folder);

  const DecoderShape& shape() const override { return shape_; }
  // Rounded to f16. Throws CheckpointError (content) for a value that f16 cannot hold.
  void read(const PlacedWeight& tensor, std::int64_t row, std::int64_t rows,
            std::span<std::uint16_t> to) const override;

 private:
  DecoderShape shape_;
  ModelFiles files_;
};

}  // namespace inferometer
