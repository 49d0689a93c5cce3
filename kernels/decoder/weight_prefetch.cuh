// Weights on their way while small kernels run. Between two products the memory would be idle for as long as a norm and
// two launches take, some 4 us, in which it could deliver 18 MB; so kernels with few blocks get further ones that ask
// for weights of the product to come and end at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/decoder/weight_prefetch.hpp"
#include "kernels/ptx/prefetch_l2.cuh"

namespace inferometer::decoder {

inline constexpr int kPrefetchPiece = 4096;
inline constexpr int kPrefetchBlocks = 96;  // at most, with one warp that asks

// Blocks to be added to a grid.
inline unsigned prefetch_blocks(const WeightPrefetch& weights) {
  const std::int64_t pieces = weights.wanted / kPrefetchPiece;
  return static_cast<unsigned>(std::min<std::int64_t>((pieces + 31) / 32, kPrefetchBlocks));
}

// For block `block` of `blocks` of those. Pieces are spread evenly over all weights: a product begins everywhere at
// once, and then finds the same share of its bytes in the L2 in all of its blocks.
__device__ __forceinline__ void prefetch_weights(const WeightPrefetch& weights, unsigned block, unsigned blocks) {
  if (threadIdx.x >= 32) return;
  const std::int64_t pieces = weights.wanted / kPrefetchPiece;
  const std::int64_t stride = weights.bytes / pieces / 16 * 16;
  for (std::int64_t piece = block * 32 + threadIdx.x; piece < pieces; piece += 32 * blocks)
    prefetch_l2(static_cast<const char*>(weights.data) + piece * stride, kPrefetchPiece);
}

}  // namespace inferometer::decoder
