// Between the product that makes q, k and v of a layer's tokens and the attention that reads them: biases, the norm of
// each head, RoPE, and the way of k and v into the KV cache, in one pass. Steps of single tokens over 16-bit caches do
// without this kernel where the attention turns new tokens itself (attention_decode/new_tokens.hpp).
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "harness/operator/variant.hpp"
#include "kernels/common/fast_divide.hpp"
#include "kernels/matmul/product_ends.hpp"

namespace inferometer::decoder {

// Where k and v of a token go. With a cache: row table[r][p / block_size] * block_size + p % block_size of it, where p
// is the token's position and r = rows[token]. Without (table is null): row `token`, for a quantiser to take on.
struct AppendTarget {
  __half* k = nullptr;  // rows of [kv_heads, head_dim]
  __half* v = nullptr;
  const std::int32_t* rows = nullptr;   // [tokens]
  const std::int32_t* table = nullptr;  // [.., max_blocks]
  std::int32_t max_blocks = 0;
  FastDivide block_size = {};
};

struct RopeAppendArgs {
  const __half* qkv = nullptr;              // [tokens, q_heads + 2 kv_heads, head_dim]: q's heads, k's, v's
  LateNorm norm = {};                       // qkv is to be multiplied with its factor, which this kernel's head 0 keeps
  const __half* bias = nullptr;             // [q_heads + 2 kv_heads, head_dim], or null
  const __half* q_gain = nullptr;           // [head_dim], or null: no norm of heads
  const __half* k_gain = nullptr;           // with q_gain
  const float2* turns = nullptr;            // [positions, head_dim / 2]: cosine and sine of a pair's angle
  const std::int32_t* positions = nullptr;  // [tokens]; negative: the token is padding, and the cache keeps its rows
  __half* q = nullptr;                      // [tokens, q_heads, head_dim]
  AppendTarget to = {};
  std::int32_t tokens = 0;
  std::int32_t q_heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;  // a multiple of 4, at most kMostHeadDim
  float eps = 0;
};

inline constexpr std::int32_t kMostHeadDim = 256;

// What the step's inputs say, positions, rows and table, is read early: they were there before the product in front of
// this kernel began.
void launch_rope_append(const RopeAppendArgs& args, Stream stream);

}  // namespace inferometer::decoder
