// The products of a decoder layer from one attention to the next, for one token, in one kernel:
//
//   h += a O^T                                          [hidden]         f32, a: what attention gave
//   y  = silu(x G^T) * (x U^T),  x = RMSNorm(h, gain)   [intermediate]   f16
//   h += y D^T                                          [hidden]
//   z  = x QKV^T,                x = RMSNorm(h, gain)   [qkv_rows]       f16, of the next layer
//
// One block a multiprocessor stays for all four. Each product's rows are spread over the blocks, and a block needs what
// all others computed before it goes on, but the copies of weights do not wait: they depend on no activation, so warps
// keep a ring in shared memory full of what comes next. 132 rings of 192 KB are 5.4 us of an H200's memory.
//
// No barrier of the grid: a vector that goes from blocks to blocks (ChainExchange) holds before the launch what no
// result can be, and whoever needs it reads it until all of it is there. Norms are late (matmul/product_ends.hpp): the
// owner of an element of h sends f16(h * gain * scale), and sums of products are divided by rms(h).
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

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

// Weights are row-major [rows, k] f16, or packed (matmul/packing.hpp: symmetric, groups no shorter than a slice).
// gate_up holds 8 rows of the gate and 8 of the up projection in turns.
struct ChainLayer {
  const void* weights[kChainProducts];  // next_qkv: null behind the last layer
  const __half* mlp_gain;
  const __half* next_gain;
};

// All bits set: before a launch the elements of its exchange, f16 and f32, are NaNs that no conversion and no sum
// gives.
inline constexpr std::uint32_t kUnsentFloat = 0xffffffffU;  // or two f16
inline constexpr int kChainParts = 8;                       // sums of squares of a block

// Vectors that go from blocks to blocks, one behind the other from `memory` on (16-byte aligned).
struct ChainExchange {
  std::uint8_t* memory;

  // [hidden] f16 behind attention_out, [intermediate] behind gate_up, [hidden] behind down.
  INFEROMETER_HOST_DEVICE __half* vector(const ChainShape& shape, ChainProduct behind) const {
    const int at = behind == ChainProduct::attention_out ? 0
                   : behind == ChainProduct::gate_up     ? shape.hidden
                                                         : shape.hidden + shape.intermediate;
    return reinterpret_cast<__half*>(memory) + at;
  }
  // [blocks, kChainParts] f32: sums of squares of the rows of h that a block's groups have.
  INFEROMETER_HOST_DEVICE float* squares(const ChainShape& shape, int blocks, ChainProduct behind) const {
    return reinterpret_cast<float*>(memory + (2 * shape.hidden + shape.intermediate) * 2) +
           (behind == ChainProduct::attention_out ? 0 : blocks * kChainParts);
  }
  static INFEROMETER_HOST_DEVICE int bytes(const ChainShape& shape, int blocks) {
    return (2 * shape.hidden + shape.intermediate) * 2 + 2 * blocks * kChainParts * 4;
  }
};

struct ChainArgs {
  ChainShape shape;
  ChainLayer layer;
  float eps;
  int stages;               // of the ring
  const __half* attention;  // [attention]
  float* h;                 // [hidden]
  __half* qkv;              // [qkv_rows]
  float* inverse;           // 1 / rms(h) at the norm before; the last norm's is left here
  ChainExchange exchange;   // unsent
  ChainExchange used;       // of the launch before, to be made unsent again; another one
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
