// New tokens as the product of q, k and v left them, for decode attention that turns them itself: biases, norms of
// heads and RoPE, and the way of k and v into the cache, as decoder/rope_append.hpp without attention behind it.
//
// A sequence has one new token, its newest. Every block turns the queries that it needs, and the block whose part holds
// the newest key that key too. The warp that owns its tile uses this copy and stores k and v in their slot. Nobody else
// reads that slot: tiles of warps and keys of blocks are disjoint, and all query rows of a KV head are in one block.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/matmul/product_ends.hpp"

namespace inferometer::decode {

struct NewTokens {
  const __half* qkv = nullptr;     // [batch, q_heads + 2 kv_heads, head_dim]: q's heads, k's, v's
  LateNorm norm = {};              // qkv is to be multiplied with its factor, which one block a sequence keeps
  const __half* bias = nullptr;    // [q_heads + 2 kv_heads, head_dim], or null
  const __half* q_gain = nullptr;  // [head_dim], or null: no norm of heads
  const __half* k_gain = nullptr;  // with q_gain
  const float2* turns = nullptr;   // [positions, head_dim / 2]: cosine and sine of a pair's angle
  __half* k = nullptr;             // the cache that the attention reads
  __half* v = nullptr;
  float eps = 0;
};

}  // namespace inferometer::decode
