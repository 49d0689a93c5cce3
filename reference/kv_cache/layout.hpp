// How a KV cache lies in memory, byte by byte. attention_decode reads it, kv_append writes it; kernels and references
// each compute these positions by themselves, so that neither can hide the other's mistake.
//
// kv_bits 16. K and V are arrays of tokens [kv_heads, head_dim] of `dtype`:
//   contiguous  [batch, capacity, kv_heads, head_dim]          token t of sequence b is row b * capacity + t
//   paged       [num_blocks, block_size, kv_heads, head_dim]   row block_table[b][t / block_size] * block_size
//                                                                  + t % block_size
//
// kv_bits 8 and 4. K and V are arrays of codes, one row a token and KV head, heads outermost, so that the short rows of
// neighbouring tokens join to whole lines of memory:
//   contiguous  [batch, kv_heads, capacity, row_bytes]         u8
//   paged       [num_blocks, kv_heads, block_size, row_bytes]  u8
// row_bytes is head_dim * kv_bits / 8, rounded up to a multiple of 16; the bytes past the codes are never used.
//   kv_bits 8   byte d is the code of element d: an int8 in [-127, 127], or with kv_format fp8_e4m3 an FP8 E4M3
//               number (OCP 8-bit floating point specification 1.0: 4 exponent bits, bias 7, no infinity)
//   kv_bits 4   byte j holds element 2j in bits 0-3 and element 2j + 1 in bits 4-7, each an int4 in [-7, 7]
// Scales, f16, stand beside: those of K and V of one token, head and group are neighbours,
//   contiguous  [batch, kv_heads, capacity, groups, 2]
//   paged       [num_blocks, kv_heads, block_size, groups, 2]  index 0: K, index 1: V
// with groups = head_dim / kv_group_size. An element is worth code * scale.
//
// Quantising a group of elements x, all in f32, each operation rounded once to nearest even:
//   scale = f16(max |x| / largest code), at most 65504; largest code: 127, 7, or 448 for FP8
//   code  = x * (1 / scale), rounded to the nearest code, ties to even, and clamped to +- the largest code;
//           0 where the scale is 0; an FP8 code keeps the sign of a zero that it rounds to
// The scale is rounded before it is used, so that codes and stored scale belong together.
#pragma once

#include <cstdint>
#include <string>

namespace inferometer {

// What attention_decode and kv_append both demand of these fields. Throws ProblemError naming the one at fault.
void check_kv_quantization(std::int64_t kv_bits, const std::string& kv_format, std::int64_t kv_group_size,
                           std::int64_t head_dim);

}  // namespace inferometer
