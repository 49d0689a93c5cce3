// Which block holds the continuation of a prefix: a hash chain over full blocks, in which a hit is compared token by
// token, so that no collision ever hands out another's keys and values.
//
// A key or value depends on all tokens before it, so a block serves only prompts that agree with it from the first
// token on. Comparing the whole beginning at every block would cost the square of its length; instead every prefix of
// full blocks that is in the index has a number of its own, never used twice, and a block is found by (number of the
// prefix in front of it, its tokens), both compared exactly. By induction the whole beginning is equal.
//
// Blocks may hold the same prefix (two sequences computed it at once); they share its number and each can be found.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "kernels/kv_cache/block_states.hpp"

namespace inferometer {

using TokenId = std::int32_t;
// Hash of a block's tokens behind a prefix with hash `prefix`.
using BlockHash = std::uint64_t (*)(std::uint64_t prefix, std::span<const TokenId> tokens);
std::uint64_t hash_block_tokens(std::uint64_t prefix, std::span<const TokenId> tokens);

// A prefix of full blocks. The default is the empty one.
struct Prefix {
  std::uint64_t number = 0;
  std::uint64_t hash = 0;
  bool operator==(const Prefix&) const = default;
};

class PrefixIndex {
 public:
  PrefixIndex(std::int32_t num_blocks, std::int32_t block_size, BlockHash hash, std::pmr::memory_resource* memory);

  // Notes tokens that stand in a block from `slot` on, whether or not the block is full or in the index.
  void write(std::int32_t block, std::int64_t slot, std::span<const TokenId> tokens);
  void copy(std::int32_t source, std::int32_t destination);

  // The block in the index that continues `prefix` with these tokens, a block of them; kNoBlock if there is none.
  std::int32_t find(const Prefix& prefix, std::span<const TokenId> tokens) const;
  // Puts a full block behind `prefix` into the index, unless it is there, and returns the prefix that it ends.
  Prefix insert(const Prefix& prefix, std::int32_t block);
  void erase(std::int32_t block);  // which is in the index

  bool contains(std::int32_t block) const { return at(block).prefix.number != 0; }
  const Prefix& prefix(std::int32_t block) const { return at(block).prefix; }  // that the block ends
  std::int64_t size() const { return size_; }

  static double bytes_per_block(std::int64_t num_blocks);  // without the tokens

  // Sentences for what does not hold.
  void check(std::vector<std::string>& broken) const;

  bool operator==(const PrefixIndex&) const = default;

 private:
  friend struct BlockPoolCorruption;

  struct Entry {
    Prefix prefix;             // number 0: not in the index
    std::uint64_t parent = 0;  // number of the prefix in front
    std::int32_t previous = kNoBlock;
    std::int32_t next = kNoBlock;  // in the bucket
    bool operator==(const Entry&) const = default;
  };

  Entry& at(std::int32_t block) { return entries_[static_cast<std::size_t>(block)]; }
  const Entry& at(std::int32_t block) const { return entries_[static_cast<std::size_t>(block)]; }
  std::int32_t& bucket(std::uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  std::span<const TokenId> tokens(std::int32_t block) const;
  std::int32_t find(std::uint64_t parent, std::uint64_t hash, std::span<const TokenId> tokens) const;

  std::int64_t block_size_;
  BlockHash hash_;
  std::pmr::vector<Entry> entries_;
  std::pmr::vector<std::int32_t> buckets_;  // first block of each; a power of two of them
  std::pmr::vector<TokenId> tokens_;        // [num_blocks, block_size]
  std::uint64_t next_number_ = 1;
  std::int64_t size_ = 0;
};

}  // namespace inferometer
