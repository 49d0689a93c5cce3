#include "reference/kv_cache/block_pool.hpp"

#include <string>

#include "harness/operator/fields.hpp"

namespace inferometer {

BlockPool::BlockPool(std::int32_t num_blocks, std::int32_t block_size) : block_size_(block_size) {
  if (num_blocks < 1)
    throw ProblemError("num_blocks", "num_blocks must be at least 1, got " + std::to_string(num_blocks));
  if (block_size < 1)
    throw ProblemError("block_size", "block_size must be at least 1, got " + std::to_string(block_size));
  taken_.resize(static_cast<std::size_t>(num_blocks));
  free_.reserve(taken_.size());  // so that giving a block back never allocates
  for (std::int32_t block = num_blocks; block-- > 0;) free_.push_back(block);
}

std::int32_t BlockPool::take() {
  if (free_.empty())
    throw KvCacheError(KvCacheFault::full, "none of the " + std::to_string(num_blocks()) + " blocks is free");
  const std::int32_t block = free_.back();
  free_.pop_back();
  taken_[static_cast<std::size_t>(block)] = true;
  return block;
}

void BlockPool::give_back(std::int32_t block) {
  if (!is_taken(block))
    throw KvCacheError(KvCacheFault::not_owned, "block " + std::to_string(block) + " is free already");
  taken_[static_cast<std::size_t>(block)] = false;
  free_.push_back(block);
}

bool BlockPool::is_taken(std::int32_t block) const {
  if (block < 0 || block >= num_blocks())
    throw KvCacheError(KvCacheFault::unknown_block, "block must be from 0 to " + std::to_string(num_blocks() - 1) +
                                                        ", got " + std::to_string(block));
  return taken_[static_cast<std::size_t>(block)];
}

}  // namespace inferometer
