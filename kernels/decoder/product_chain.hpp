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
#include "kernels/decoder/product_chain_shape.hpp"

namespace inferometer::decoder {

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

}  // namespace inferometer::decoder
