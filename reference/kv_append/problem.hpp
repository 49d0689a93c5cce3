// kv_append: store the keys and values of new tokens in the KV cache, behind those that are there, quantised on the way
// when kv_bits says so. One token a sequence while decoding, a chunk of the prompt in prefill. layout.hpp says where
// each byte goes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "reference/kv_cache/layout.hpp"

namespace inferometer {

struct KvAppendProblem {
  std::int64_t batch = 1;
  std::int64_t new_tokens = 1;         // of every sequence
  std::int64_t context = 0;            // tokens that every sequence holds already
  std::vector<std::int64_t> contexts;  // or one length per sequence (0 allowed); then `context` is their maximum
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 128;
  std::int64_t block_size = 0;        // tokens per block of a paged cache; 0: contiguous
  std::int64_t kv_bits = 16;          // 16: the cache holds `dtype`
  std::string kv_format = "integer";  // of 8-bit codes: integer or fp8_e4m3
  std::int64_t kv_group_size = 0;     // elements that share a scale: 32, 64, 128; 0: head_dim
  Dtype dtype = Dtype::f16;           // of the new keys and values

  std::int64_t context_of(std::int64_t sequence) const {
    return contexts.empty() ? context : contexts[static_cast<std::size_t>(sequence)];
  }
  std::int64_t capacity() const { return context + new_tokens; }  // of a contiguous cache, tokens a sequence
  // Columns of the block table: blocks of the longest sequence.
  std::int64_t max_blocks() const { return block_size == 0 ? 0 : (capacity() + block_size - 1) / block_size; }
  std::int64_t groups() const { return kv_group_size == 0 ? 1 : head_dim / kv_group_size; }
};

// Dense, last index fastest, as layout.hpp says. Slots of other tokens must keep what they hold, and so must the bytes
// that pad rows of codes.
struct KvAppendTensors {
  const void* k_new = nullptr;                // [batch, new_tokens, kv_heads, head_dim]   dtype
  const void* v_new = nullptr;                // as k_new
  const std::int32_t* seq_lens = nullptr;     // [batch]  tokens stored already
  const std::int32_t* block_table = nullptr;  // paged: [batch, max_blocks()]; contiguous: null
  void* k = nullptr;                          // the cache: dtype, or u8 codes
  void* v = nullptr;                          // as k
  std::uint16_t* kv_scales = nullptr;         // kv_bits 8, 4: f16, else null
};

struct KvAppend {
  static constexpr std::string_view kName = "kv_append";
  using Problem = KvAppendProblem;
  using Tensors = KvAppendTensors;
};

}  // namespace inferometer
