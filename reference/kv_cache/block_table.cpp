#include "reference/kv_cache/block_table.hpp"

#include <limits>
#include <string>
#include <utility>

namespace inferometer {

BlockTable::~BlockTable() { give_back_all(); }

BlockTable::BlockTable(BlockTable&& other) noexcept
    : pool_(other.pool_),
      blocks_(std::exchange(other.blocks_, {})),
      length_(std::exchange(other.length_, 0)),
      freed_(std::exchange(other.freed_, true)) {}

void BlockTable::append(std::int64_t tokens) {
  if (freed_) throw KvCacheError(KvCacheFault::freed, "a freed sequence takes no tokens");
  if (tokens < 0 || tokens > std::numeric_limits<std::int64_t>::max() - length_)
    throw KvCacheError(KvCacheFault::wrong_size,
                       "cannot append " + std::to_string(tokens) + " tokens to " + std::to_string(length_));
  const std::int64_t end = length_ + tokens;
  const std::int64_t wanted = end / pool_->block_size() + (end % pool_->block_size() != 0 ? 1 : 0);
  const std::int64_t missing = wanted - std::ssize(blocks_);
  if (missing > pool_->free_blocks())
    throw KvCacheError(KvCacheFault::full, std::to_string(tokens) + " more tokens need " + std::to_string(missing) +
                                               " blocks, " + std::to_string(pool_->free_blocks()) + " of " +
                                               std::to_string(pool_->num_blocks()) + " are free");
  // Before the first block is taken, since it may throw; doubled, so that a growing sequence is moved rarely.
  if (const auto size = static_cast<std::size_t>(wanted); size > blocks_.capacity()) blocks_.reserve(2 * size);
  while (std::ssize(blocks_) < wanted) blocks_.push_back(pool_->take());
  length_ = end;
}

BlockTable::Slot BlockTable::slot(std::int64_t token) const {
  if (token < 0 || token >= length_)
    throw KvCacheError(KvCacheFault::unknown_token, "the sequence holds " + std::to_string(length_) +
                                                        " tokens, there is no token " + std::to_string(token));
  return {.block = blocks_[static_cast<std::size_t>(token / pool_->block_size())],
          .offset = static_cast<std::int32_t>(token % pool_->block_size())};
}

std::int32_t BlockTable::last_block_fill() const {
  return blocks_.empty() ? 0 : static_cast<std::int32_t>((length_ - 1) % pool_->block_size()) + 1;
}

void BlockTable::free() {
  if (freed_) throw KvCacheError(KvCacheFault::freed, "the sequence is freed already");
  give_back_all();
  freed_ = true;
}

void BlockTable::give_back_all() noexcept {
  // From the end, so that the pool hands them out in the same order again.
  for (; !blocks_.empty(); blocks_.pop_back()) pool_->give_back(blocks_.back());
  length_ = 0;
}

}  // namespace inferometer
