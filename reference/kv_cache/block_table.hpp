// The block table of one sequence: token t stands in slot t % block_size of block blocks()[t / block_size].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/kv_cache/block_pool.hpp"

namespace inferometer {

class BlockTable {
 public:
  explicit BlockTable(BlockPool& pool) : pool_(&pool) {}  // the pool outlives the table
  ~BlockTable();                                          // gives back what is not freed yet
  BlockTable(BlockTable&& other) noexcept;                // `other` is as after free()
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;
  BlockTable& operator=(BlockTable&&) = delete;

  // Makes room for `tokens` more tokens, taking blocks as needed: for all of them or for none.
  // Throws KvCacheError (full, freed; wrong_size when the length passes 2^63 - 1 or tokens is negative).
  void append(std::int64_t tokens = 1);

  struct Slot {
    std::int32_t block;
    std::int32_t offset;  // tokens in front of it in the block
  };
  Slot slot(std::int64_t token) const;  // throws KvCacheError (unknown_token)

  std::int64_t length() const { return length_; }  // tokens
  std::span<const std::int32_t> blocks() const { return blocks_; }
  std::int32_t last_block_fill() const;  // tokens in the last block; 0 without blocks

  // Ends the sequence: its blocks go back to the pool. Throws KvCacheError (freed) the second time.
  void free();

 private:
  void give_back_all() noexcept;

  BlockPool* pool_;
  std::vector<std::int32_t> blocks_;
  std::int64_t length_ = 0;
  bool freed_ = false;
};

}  // namespace inferometer
