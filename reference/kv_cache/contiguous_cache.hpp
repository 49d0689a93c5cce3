// The contiguous KV cache of one sequence: for every layer one array of keys and one of values, reserved to the maximum
// length at the start. It is what paging is measured against: simple, views without copies, memory for tokens that may
// never come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "reference/kv_cache/error.hpp"

namespace inferometer {

struct ContiguousCacheShape {
  std::int64_t layers = 1;
  std::int64_t capacity = 1;  // tokens
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 128;
  Dtype dtype = Dtype::f16;

  std::int64_t row_bytes() const {  // the keys, or the values, of one token in one layer
    return kv_heads * head_dim * static_cast<std::int64_t>(dtype_bytes(dtype));
  }
};

// The tokens that a layer holds, [tokens, kv_heads, head_dim] each. Valid as long as the cache; appending moves
// nothing.
struct KvPrefix {
  std::int64_t tokens = 0;
  std::span<const std::byte> keys;
  std::span<const std::byte> values;
};

class ContiguousCache {
 public:
  // Throws ProblemError naming the field for a size that is not positive or too large.
  explicit ContiguousCache(const ContiguousCacheShape& shape);

  // Adds one token, or a chunk of them, behind those that the layer holds: [tokens, kv_heads, head_dim] of the cache's
  // dtype. Throws KvCacheError (unknown_layer, wrong_size, full).
  void append(std::int64_t layer, std::span<const std::byte> keys, std::span<const std::byte> values);

  KvPrefix prefix(std::int64_t layer) const;      // throws KvCacheError (unknown_layer)
  std::int64_t length(std::int64_t layer) const;  // tokens; throws KvCacheError (unknown_layer)
  std::int64_t length() const;                    // tokens that every layer holds
  void clear();                                   // forgets all tokens, keeps the memory

  const ContiguousCacheShape& shape() const { return shape_; }
  std::int64_t reserved_bytes() const;  // of keys and values, whatever they hold
  std::int64_t used_bytes() const;      // of those, the bytes of stored tokens

 private:
  std::size_t checked(std::int64_t layer) const;
  std::int64_t offset(std::size_t layer) const;  // bytes in front of the layer's first token

  ContiguousCacheShape shape_;
  std::vector<std::int64_t> lengths_;  // by layer
  std::unique_ptr<std::byte[]> keys_;  // [layers, capacity, kv_heads, head_dim]
  std::unique_ptr<std::byte[]> values_;
};

}  // namespace inferometer
