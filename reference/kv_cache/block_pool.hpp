// A fixed pool of equally large blocks of a paged KV cache (Kwon et al., SOSP 2023): which are free, which are taken.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/kv_cache/error.hpp"

namespace inferometer {

class BlockPool {
 public:
  // Throws ProblemError naming the field for a size below 1. Block numbers are 32-bit, as in a block table.
  BlockPool(std::int32_t num_blocks, std::int32_t block_size);

  std::int32_t take();                 // the block freed last, at first the lowest; throws KvCacheError (full)
  void give_back(std::int32_t block);  // throws KvCacheError (unknown_block, not_owned)

  std::int32_t num_blocks() const { return static_cast<std::int32_t>(taken_.size()); }
  std::int32_t block_size() const { return block_size_; }  // tokens
  std::int32_t free_blocks() const { return static_cast<std::int32_t>(free_.size()); }
  bool is_taken(std::int32_t block) const;  // throws KvCacheError (unknown_block)

 private:
  std::int32_t block_size_;
  std::vector<std::int32_t> free_;  // the next one to take is the last
  std::vector<bool> taken_;         // by block
};

}  // namespace inferometer
