#include "reference/kv_cache/contiguous_cache.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "harness/operator/fields.hpp"

namespace inferometer {
namespace {

// Bytes of all keys, or of all values.
std::int64_t checked_bytes(const ContiguousCacheShape& shape) {
  const auto positive = [](const char* field, std::int64_t value) {
    if (value < 1) throw ProblemError(field, std::string(field) + " must be at least 1, got " + std::to_string(value));
  };
  positive("layers", shape.layers);
  positive("capacity", shape.capacity);
  positive("kv_heads", shape.kv_heads);
  positive("head_dim", shape.head_dim);
  const auto element_bytes = static_cast<std::int64_t>(dtype_bytes(shape.dtype));
  // Twice, so that the sum of keys and values fits as well.
  return checked_product("capacity", {2, shape.layers, shape.capacity, shape.kv_heads, shape.head_dim, element_bytes}) /
         2;
}

std::unique_ptr<std::byte[]> uninitialized(std::int64_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
}

}  // namespace

ContiguousCache::ContiguousCache(const ContiguousCacheShape& shape)
    : shape_(shape), keys_(uninitialized(checked_bytes(shape))), values_(uninitialized(checked_bytes(shape))) {
  lengths_.resize(static_cast<std::size_t>(shape.layers));
}

void ContiguousCache::append(std::int64_t layer, std::span<const std::byte> keys, std::span<const std::byte> values) {
  std::int64_t& length = lengths_[checked(layer)];
  if (keys.size() != values.size() || std::ssize(keys) % shape_.row_bytes() != 0)
    throw KvCacheError(KvCacheFault::wrong_size, "keys and values must each be a multiple of the " +
                                                     std::to_string(shape_.row_bytes()) + " bytes of a token, got " +
                                                     std::to_string(keys.size()) + " and " +
                                                     std::to_string(values.size()));
  const std::int64_t tokens = std::ssize(keys) / shape_.row_bytes();
  if (tokens > shape_.capacity - length)
    throw KvCacheError(KvCacheFault::full, "layer " + std::to_string(layer) + " holds " + std::to_string(length) +
                                               " of at most " + std::to_string(shape_.capacity) + " tokens; " +
                                               std::to_string(tokens) + " more do not fit");
  const std::int64_t end = offset(static_cast<std::size_t>(layer)) + length * shape_.row_bytes();
  std::copy(keys.begin(), keys.end(), keys_.get() + end);
  std::copy(values.begin(), values.end(), values_.get() + end);
  length += tokens;
}

KvPrefix ContiguousCache::prefix(std::int64_t layer) const {
  const std::size_t index = checked(layer);
  const auto bytes = static_cast<std::size_t>(lengths_[index] * shape_.row_bytes());
  return {.tokens = lengths_[index],
          .keys = {keys_.get() + offset(index), bytes},
          .values = {values_.get() + offset(index), bytes}};
}

std::int64_t ContiguousCache::length(std::int64_t layer) const { return lengths_[checked(layer)]; }

std::int64_t ContiguousCache::length() const { return *std::min_element(lengths_.begin(), lengths_.end()); }

void ContiguousCache::clear() { std::fill(lengths_.begin(), lengths_.end(), 0); }

std::int64_t ContiguousCache::reserved_bytes() const {
  return 2 * shape_.layers * shape_.capacity * shape_.row_bytes();
}

std::int64_t ContiguousCache::used_bytes() const {
  return 2 * std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0}) * shape_.row_bytes();
}

std::size_t ContiguousCache::checked(std::int64_t layer) const {
  if (layer < 0 || layer >= shape_.layers)
    throw KvCacheError(KvCacheFault::unknown_layer, "layer must be from 0 to " + std::to_string(shape_.layers - 1) +
                                                        ", got " + std::to_string(layer));
  return static_cast<std::size_t>(layer);
}

std::int64_t ContiguousCache::offset(std::size_t layer) const {
  return static_cast<std::int64_t>(layer) * shape_.capacity * shape_.row_bytes();
}

}  // namespace inferometer
