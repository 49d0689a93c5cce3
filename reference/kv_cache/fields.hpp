// Fields that every problem over a KV cache has, as members of the same names, and what must hold of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "harness/operator/fields.hpp"

namespace inferometer {

// Heads, blocks and what a stored key or value is: kv_heads, head_dim, block_size, kv_bits, kv_format, kv_group_size.
template <class Problem>
std::vector<Field<Problem>> kv_cache_fields() {
  return {
      {.name = "kv_heads", .member = &Problem::kv_heads, .doc = "key and value heads"},
      {.name = "head_dim",
       .member = &Problem::head_dim,
       .doc = "elements of one head, a multiple of 8",
       .min = 8,
       .max = 256},
      {.name = "block_size",
       .member = &Problem::block_size,
       .doc = "tokens in a block of the paged cache; 0: contiguous cache",
       .min = 0,
       .max = 512},
      {.name = "kv_bits",
       .member = &Problem::kv_bits,
       .doc = "bits of a stored key or value: 16 (dtype), 8 or 4",
       .min = 4,
       .max = 16},
      {.name = "kv_format",
       .member = &Problem::kv_format,
       .doc = "what 8-bit codes are",
       .words = {"integer", "fp8_e4m3"},
       .default_unsaid = true},
      {.name = "kv_group_size",
       .member = &Problem::kv_group_size,
       .doc = "elements of a head that share a scale: 32, 64 or 128; 0: head_dim",
       .min = 0,
       .max = 128},
  };
}

// All fields of a problem, in the order in which results show them.
template <class Problem>
std::vector<Field<Problem>> joined_fields(std::initializer_list<std::vector<Field<Problem>>> parts) {
  std::vector<Field<Problem>> fields;
  for (const std::vector<Field<Problem>>& part : parts) fields.insert(fields.end(), part.begin(), part.end());
  return fields;
}

// The longest of `contexts`, 0 for an empty list.
std::int64_t longest_context(const std::vector<std::int64_t>& contexts);

// All of these throw ProblemError naming the field at fault.

// `contexts` is empty or holds a length for each sequence; then `context` is the longest.
void check_contexts(std::int64_t batch, std::int64_t context, const std::vector<std::int64_t>& contexts);

void check_head_dim(std::int64_t head_dim);

// Of the pool of a paged cache: its blocks have 32-bit numbers.
void check_pool_blocks(std::int64_t blocks);

}  // namespace inferometer
