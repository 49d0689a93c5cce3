// The KV cache of a decoder: a pool of blocks for each layer (reference/kv_cache/layout.hpp, paged), all in one piece
// of memory: K of every layer, then V of every layer, then scales.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/decoder/problem.hpp"

namespace inferometer::decoder {

struct KvPoolShape {
  std::int64_t layers = 1;
  std::int64_t blocks = 1;  // of the caller, and behind them one for padding where keys are quantised
  std::int64_t spare_blocks = 0;
  std::int64_t block_bytes = 0;        // of K, and of V
  std::int64_t block_scale_bytes = 0;  // 0 with 16 bits

  std::int64_t layer_bytes() const { return (blocks + spare_blocks) * block_bytes; }
  std::int64_t layer_scale_bytes() const { return (blocks + spare_blocks) * block_scale_bytes; }
  std::int64_t bytes() const { return layers * (2 * layer_bytes() + layer_scale_bytes()); }

  std::int64_t k_at(std::int64_t layer) const { return layer * layer_bytes(); }
  std::int64_t v_at(std::int64_t layer) const { return (layers + layer) * layer_bytes(); }
  std::int64_t scales_at(std::int64_t layer) const { return 2 * layers * layer_bytes() + layer * layer_scale_bytes(); }
};

inline KvPoolShape kv_pool_shape(const DecoderShape& s, std::int64_t kv_bits, std::int64_t block_size,
                                 std::int64_t num_blocks) {
  const std::int64_t row_bytes = kv_bits == 16 ? s.head_dim * 2 : (s.head_dim * kv_bits / 8 + 15) / 16 * 16;
  return {.layers = s.layers,
          .blocks = num_blocks,
          .spare_blocks = kv_bits == 16 ? 0 : 1,
          .block_bytes = block_size * s.kv_heads * row_bytes,
          .block_scale_bytes = kv_bits == 16 ? 0 : block_size * s.kv_heads * 4};  // K's and V's, f16
}

}  // namespace inferometer::decoder
