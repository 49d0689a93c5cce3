// X of a matmul in float, as cpu.eigen reads it: most tokens transposed, one per SIMD lane; the last few as rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/common/tile_product.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {

// How m tokens are shared between whole vectors and single rows.
struct TokenSplit {
  // At most so many single ones: each costs a dot product per row of W, and a vector of tokens, however full, costs
  // about as much as this many.
  static constexpr std::int64_t kMostSingles = kLanes == 16 ? 5 : 2;

  std::int64_t singles;
  std::int64_t in_vectors;
  std::int64_t columns;  // in_vectors, padded to whole vectors

  explicit TokenSplit(std::int64_t m)
      : singles(m % kLanes <= kMostSingles ? m % kLanes : 0),
        in_vectors(m - singles),
        columns((in_vectors + kLanes - 1) / kLanes * kLanes) {}
};

// A view of floats(p) floats: X^T of the tokens in vectors, in blocks [k, at most kTileColumns] one behind the other,
// then the rows [k] of the single ones.
class FloatTokens {
 public:
  FloatTokens(float* data, const MatmulProblem& p) : data_(data), k_(p.k), split_(p.m) {}

  static std::int64_t floats(const MatmulProblem& p) {
    const TokenSplit split(p.m);
    return (split.columns + split.singles) * p.k;
  }

  const TokenSplit& split() const { return split_; }
  float* block(std::int64_t first_token) const { return data_ + first_token * k_; }
  std::int64_t block_columns(std::int64_t first_token) const {
    return std::min<std::int64_t>(kTileColumns, split_.columns - first_token);
  }
  float* single(std::int64_t index) const { return data_ + (split_.columns + index) * k_; }

  // Fill one block, with kScratchFloats floats to work in, and one single token. `x`: [m, k] of p.dtype.
  static constexpr std::int64_t kScratchDepth = 256;
  static constexpr std::int64_t kScratchFloats = kTileColumns * kScratchDepth;
  void fill_block(const MatmulProblem& p, const void* x, std::int64_t first_token, float* scratch) const;
  void fill_single(const MatmulProblem& p, const void* x, std::int64_t index) const;

 private:
  float* data_;
  std::int64_t k_;
  TokenSplit split_;
};

}  // namespace inferometer
