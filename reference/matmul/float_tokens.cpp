#include "reference/matmul/float_tokens.hpp"

#include "reference/common/convert.hpp"

namespace inferometer {

void FloatTokens::fill_block(const MatmulProblem& p, const void* x, std::int64_t first_token, float* scratch) const {
  const std::int64_t columns = block_columns(first_token);
  const std::int64_t count = std::min(columns, split_.in_vectors - first_token);
  for (std::int64_t begin = 0; begin < k_; begin += kScratchDepth) {
    const std::int64_t depth = std::min(kScratchDepth, k_ - begin);
    for (std::int64_t i = 0; i < count; ++i)
      load_floats(p.dtype, x, (first_token + i) * k_ + begin, depth, scratch + i * kScratchDepth);
    transpose_tile(scratch, kScratchDepth, count, depth, block(first_token) + begin * columns, columns);
  }
}

void FloatTokens::fill_single(const MatmulProblem& p, const void* x, std::int64_t index) const {
  load_floats(p.dtype, x, (split_.in_vectors + index) * k_, k_, single(index));
}

}  // namespace inferometer
