// Sizes of the products of product_chain.hpp, and which rows of each are whose.
#pragma once

#include "harness/operator/dtype.hpp"

namespace inferometer::decoder {

inline constexpr int kChainProducts = 4;
enum class ChainProduct : int { attention_out, gate_up, down, next_qkv };

struct ChainShape {  // in elements; all are multiples of 64
  int hidden;
  int attention;  // q_heads * head_dim
  int intermediate;
  int qkv_rows;
};

// Units [begin, begin + count) of a product: rows of f16 (features where it is gated), tiles of packed weights.
struct ChainShare {
  int begin;
  int count;
};

// The share of `block`: shares differ by one unit at most, the longer ones are those of the blocks from `first` on.
INFEROMETER_HOST_DEVICE constexpr ChainShare share_units(int units, int blocks, int block, int first) {
  const int index = block >= first ? block - first : block - first + blocks;
  const int extra = units % blocks;
  return {index * (units / blocks) + (index < extra ? index : extra), units / blocks + (index < extra ? 1 : 0)};
}

// `unit` rows a unit (1: rows of f16). attention_out and down have the same shares: a block keeps its rows of h.
// Otherwise a product begins where the one before it had its last longer share, so that a block with more of one has
// less of another; its ring evens that out.
INFEROMETER_HOST_DEVICE constexpr ChainShare chain_share(const ChainShape& shape, ChainProduct product, int unit,
                                                         int blocks, int block) {
  const int h_units = shape.hidden / unit;
  const int gated_units = shape.intermediate / (unit == 1 ? 1 : unit / 2);
  const int after_h = h_units % blocks;
  const int after_gate_up = (after_h + gated_units % blocks) % blocks;
  switch (product) {
    case ChainProduct::gate_up: return share_units(gated_units, blocks, block, after_h);
    case ChainProduct::next_qkv: return share_units(shape.qkv_rows / unit, blocks, block, after_gate_up);
    default: return share_units(h_units, blocks, block, 0);
  }
}

INFEROMETER_HOST_DEVICE constexpr int chain_rows(const ChainShape& shape, ChainProduct product) {
  switch (product) {
    case ChainProduct::gate_up: return 2 * shape.intermediate;
    case ChainProduct::next_qkv: return shape.qkv_rows;
    default: return shape.hidden;
  }
}

INFEROMETER_HOST_DEVICE constexpr int chain_k(const ChainShape& shape, ChainProduct product) {
  switch (product) {
    case ChainProduct::attention_out: return shape.attention;
    case ChainProduct::down: return shape.intermediate;
    default: return shape.hidden;
  }
}

INFEROMETER_HOST_DEVICE constexpr int chain_most_k(const ChainShape& shape) {
  const int wide = shape.attention > shape.hidden ? shape.attention : shape.hidden;
  return shape.intermediate > wide ? shape.intermediate : wide;
}

}  // namespace inferometer::decoder
