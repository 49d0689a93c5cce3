// The decoder as its equations: a whole sequence at once, in f64, without a cache. The truth for everything else.
#pragma once

#include <cstdint>
#include <span>

#include "reference/common/eigen.hpp"
#include "reference/decoder/problem.hpp"

namespace inferometer {

using DecoderMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct DecoderBits {
  std::int64_t weights = 16;  // of the matrices in the layers: 16, 8, 4
  std::int64_t kv = 16;       // of keys and values: 16, 8, 4
  // Of what passes from one operation to the next, in the equations: 64, or 16 to round it to f16 as devices store it
  // (residuals stay), which shows how far such roundings move logits.
  std::int64_t activations = 64;
  bool operator==(const DecoderBits&) const = default;
};

// Logits [tokens, vocabulary] of a sequence: row i follows from tokens 0 to i. Keys and values are rounded as a cache
// keeps them; nothing else is, unless `bits` asks for it. The first `skipped` rows are left out.
DecoderMatrix decoder_logits(const DecoderWeights& weights, std::span<const std::int32_t> tokens,
                             const DecoderBits& bits, std::int64_t skipped = 0, int threads = 1);

}  // namespace inferometer
