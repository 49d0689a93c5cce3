// The device's side of a block pool, simulated: the contents of every slot. In place of keys and values a slot holds a
// fingerprint of its token and of all tokens before it, as real ones depend on them; so a block that is shared, copied
// or reused wrongly shows as a wrong fingerprint.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "harness/operator/generate.hpp"
#include "kernels/kv_cache/block_pool.hpp"

namespace inferometer::test {

class SimulatedCache {
 public:
  explicit SimulatedCache(const BlockPool& pool)
      : block_size_(static_cast<std::size_t>(pool.block_size())),
        slots_(static_cast<std::size_t>(pool.num_blocks()) * block_size_) {}

  static constexpr std::uint64_t kNothing = 0;
  static std::uint64_t fingerprint(std::uint64_t before, TokenId token) {
    return mix_bits(before ^ static_cast<std::uint32_t>(token)) | 1;  // never kNothing
  }

  // Makes the copies one after the other, in an order that nobody may rely on.
  void make_copies(std::span<const BlockCopy> copies, std::mt19937_64& random) {
    std::vector<BlockCopy> order(copies.begin(), copies.end());
    std::shuffle(order.begin(), order.end(), random);
    for (const BlockCopy& copy : order) std::ranges::copy(block(copy.source), block(copy.destination).begin());
  }

  // Computes the tokens of a sequence from `begin` on, which reads all before them.
  void compute(std::span<const std::int32_t> table, std::span<const TokenId> tokens, std::size_t begin) {
    std::uint64_t value = begin == 0 ? kNothing : slot(table, begin - 1);
    for (std::size_t t = begin; t < tokens.size(); ++t) slot(table, t) = value = fingerprint(value, tokens[t]);
  }

  // Whether the table holds the keys and values of these tokens.
  bool holds(std::span<const std::int32_t> table, std::span<const TokenId> tokens) {
    std::uint64_t value = kNothing;
    for (std::size_t t = 0; t < tokens.size(); ++t)
      if (slot(table, t) != (value = fingerprint(value, tokens[t]))) return false;
    return true;
  }

  std::uint64_t& slot(std::span<const std::int32_t> table, std::size_t token) {
    return block(table[token / block_size_])[token % block_size_];
  }

 private:
  std::span<std::uint64_t> block(std::int32_t number) {
    return std::span(slots_).subspan(static_cast<std::size_t>(number) * block_size_, block_size_);
  }

  std::size_t block_size_;
  std::vector<std::uint64_t> slots_;
};

}  // namespace inferometer::test
